import StatusProtocol
import Core
import Waku
import WakuCrypto

/// Performs the actions of a machine on the network, and passes it incoming messages. Both clients are drivers, which write and read the messages of
/// their version of the protocol. PushClient.md describes the way of a call.
protocol ClientDriver: AnyObject, Sendable {
    associatedtype Version: ClientVersion
    associatedtype Question: Sendable
    typealias Machine = PushClientMachine<Version>

    var identity: PrivateKey { get }
    var network: ClientNetwork { get }
    var routes: AnswerRoutes<Question> { get }
    var runner: MachineRunner<Version> { get }

    // MARK: Writing

    func messages(registering registration: Version.Registration, with server: PublicKey) -> [WakuMessage]
    func query(_ registrant: PublicKey, _ ticket: QueryTable.Ticket, by route: Version.QueryRoute) -> OutgoingQuestion<Question>
    func question(_ request: NotificationRequest, _ ticket: NotificationMachine.Ticket, to server: PublicKey) -> OutgoingQuestion<Question>?
    func encoded(_ advertisement: Version.Advertisement) -> [UInt8]

    // MARK: Reading

    /// Passes the answer to a question to the machine.
    ///
    /// - Returns: Whether the message can't be for anything else.
    func takeAnswer(_ message: WakuMessage, to question: Question, _ id: Int) -> Bool
    func registrationResponse(in message: WakuMessage) -> (server: PublicKey, response: Version.RegistrationResponse)?
    /// The signer of an advertisement, and the event for the machine.
    ///
    /// - Parameters:
    ///   - registrant: The rows are read only if this is the signer.
    ///   - signer: The signer of the Waku payload.
    func advertisement(
        in bytes: [UInt8], of registrant: PublicKey, signer: PublicKey
    ) throws(EnvelopeError) -> (owner: PublicKey, event: (inout Machine, _ age: Duration, _ now: Timestamp) -> Void)
}

struct OutgoingQuestion<Question: Sendable>: Sendable {
    let question: Question
    let messages: [WakuMessage]
    let answers: ContentTopic
}

extension ClientDriver {
    /// The topic of answers to registrations.
    var ownTopic: ContentTopic { StatusPushClient.answerTopic(identity.publicKey) }

    func turn(_ event: (inout Machine, Timestamp) -> Void) {
        runner.turn(event)
    }

    func runMachine() async {
        // Answers to earlier requests may still arrive.
        let isAwaiting = runner.read { machine, _ in machine.registrations.servers.values.contains(where: \.isPending) }
        if isAwaiting { routes.keep(ownTopic) }
        let advertisements = AdvertisementQueue()
        await withDiscardingTaskGroup { group in
            group.addTask { [self] in
                await advertisements.run { takeAdvertisement($0, of: $1) }
            }
            await runner.run(network.relay, deliver: { [self] in take($0, advertisements) }, perform: { [self] in begin($0, in: &$1) })
            group.cancelAll()
        }
    }

    // MARK: Actions

    private func begin(_ action: Machine.Action, in group: inout DiscardingTaskGroup) {
        switch action {
        case .report(let event): runner.report(event)
        case .watch(let registrants): routes.watch(registrants)
        case .unwatch(let registrant): routes.unwatch(registrant)
        case .register(let server, let registration): group.addTask { [self] in await register(registration, with: server) }
        case .query(let ticket, let registrant, let route): group.addTask { [self] in await ask(registrant, ticket, by: route) }
        case .request(let ticket, let server, let request): group.addTask { [self] in await send(request, ticket, to: server) }
        case .advertise(let advertisement): group.addTask { [self] in await advertise(advertisement) }
        case .lookUp(let registrants): group.addTask { [self] in await lookUp(registrants) }
        }
    }

    private func register(_ registration: Version.Registration, with server: PublicKey) async {
        let id = registration.requestID
        guard runner.read({ machine, _ in machine.registrations.isAwaitingPublication(id, to: server) }) else { return }
        let messages = messages(registering: registration, with: server)
        routes.keep(ownTopic)
        guard let isPublished = await publish(messages, answersOn: ownTopic) else { return }
        turn { $0.registrationPublished(id, to: server, isPublished: isPublished, at: $1) }
    }

    private func ask(_ registrant: PublicKey, _ ticket: QueryTable.Ticket, by route: Version.QueryRoute) async {
        let query = query(registrant, ticket, by: route)
        routes.add(query.question, on: query.answers)
        guard let isPublished = await publish(query.messages, answersOn: query.answers) else { return }
        turn { $0.queryPublished(ticket, isPublished: isPublished, at: $1) }
    }

    /// Publishes a request, unless its message was cancelled or expired meanwhile.
    private func send(_ request: NotificationRequest, _ ticket: NotificationMachine.Ticket, to server: PublicKey) async {
        guard isAwaitingPublication(ticket), let request = question(request, ticket, to: server) else { return }
        routes.add(request.question, on: request.answers)
        let isPublished = await publish(request.messages, answersOn: request.answers, if: { isAwaitingPublication(ticket) })
        guard let isPublished else { return }
        turn { $0.requestPublished(ticket, isPublished: isPublished, at: $1) }
    }

    func isAwaitingPublication(_ ticket: NotificationMachine.Ticket) -> Bool {
        runner.read { machine, now in machine.notifications.isAwaitingPublication(ticket, at: now) }
    }

    private func advertise(_ advertisement: Version.Advertisement) async {
        let messages = network.seal(encoded(advertisement), toTopic: StatusTopics.contactCode(identity.publicKey), wakuSigner: identity)
        guard let isPublished = await publish(messages, answersOn: nil) else { return }
        let rowCount = Version.rowCount(of: advertisement)
        turn { $0.advertisementPublished(rowCount: rowCount, isPublished: isPublished, at: $1) }
    }

    /// Publishes after the subscription to the answer topic was confirmed.
    ///
    /// - Parameter isNeeded: Whether the messages are still to be published once it is confirmed, which may take a while.
    /// - Returns: Whether a node accepted the messages; nil when they are not needed any more, or when the run was cancelled and the result is
    ///   unknown, as after a kill.
    private func publish(_ messages: [WakuMessage], answersOn topic: ContentTopic?, if isNeeded: () -> Bool = { true }) async -> Bool? {
        do throws(RelayError) {
            try await network.relay.waitUntilWatching(topic.map { [$0] } ?? [])
            guard isNeeded() else { return nil }
            for message in messages { try await network.relay.publish(message, on: network.pubsubTopic) }
            return true
        } catch {
            guard !Task.isCancelled else { return nil }
            runner.report(.relayFailed(reason: error.message))
            return false
        }
    }

    private func lookUp(_ registrants: [PublicKey]) async {
        await network.lookUpContactCodes(of: registrants) {
            takeAdvertisement($0, of: $1)
        } end: { registrants, result in
            // The next run looks all of them up.
            guard !Task.isCancelled, !registrants.isEmpty else { return }
            switch result {
            case .read: turn { machine, _ in machine.lookUpEnded(registrants, .found) }
            case .hidden:
                for registrant in registrants {
                    runner.report(.relayFailed(reason: "the store has too many messages on the contact code topic of \(registrant)"))
                }
                turn { machine, _ in machine.lookUpEnded(registrants, .noAnswer) }
            case .failed(let error):
                let isUnavailable = error.code == .unavailable
                if isUnavailable { runner.report(.relayFailed(reason: error.message)) }
                // If no peer has a store, advertisements are known only from now on.
                turn { machine, _ in machine.lookUpEnded(registrants, isUnavailable ? .noAnswer : .noStore) }
            }
        }
    }

    // MARK: Incoming messages

    /// Messages on unknown topics cost only a dictionary look-up.
    func take(_ message: WakuMessage, _ advertisements: AdvertisementQueue) {
        let topic = message.contentTopic
        let uses = routes[topic]
        for owner in uses.registrants { advertisements.add(message, of: owner) }
        for (id, question) in uses.questions where takeAnswer(message, to: question, id) { return }
        guard topic == ownTopic, let (server, response) = registrationResponse(in: message) else { return }
        turn { $0.registrationAnswered(by: server, response, at: $1) }
    }

    /// Any node may have relayed the advertisement: only its owner's signature counts. The topic also carries other messages.
    ///
    /// - Returns: Whether it is an advertisement that the registrant signed.
    @discardableResult
    private func takeAdvertisement(_ message: WakuMessage, of registrant: PublicKey) -> Bool {
        guard let data = network.contactCode(in: message, of: registrant) else { return false }
        do throws(EnvelopeError) {
            let (owner, event) = try advertisement(in: data.bytes, of: registrant, signer: data.signer)
            guard owner == registrant else {
                turn { machine, _ in machine.advertisementRejected(of: registrant, .foreignSignature) }
                return false
            }
            let age = Timestamp.now().since(message.timestamp)
            turn { event(&$0, age, $1) }
            return true
        } catch .otherKind {
            return false
        } catch {
            turn { machine, _ in machine.advertisementRejected(of: registrant, .unreadable) }
            return false
        }
    }
}

// MARK: - Operations for applications

extension ClientDriver {
    /// Changes what is registered, and waits for the servers' final answers.
    ///
    /// - Returns: The state at each server, once all answered or the timeout passed.
    func register(
        with servers: [PublicKey], enablesReceiving: Bool, timeout: Duration,
        _ change: @escaping @Sendable (inout Machine) -> Void
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        guard !servers.isEmpty else { throw PushClientError(code: .invalid, message: "there is no server to register with") }
        guard enablesReceiving || runner.read({ machine, _ in machine.own.isReceiving }) else { throw .receivingIsOff }
        try await runner.waitUntilRunning()
        let isReceiving = runner.turn { machine, _ in
            guard enablesReceiving || machine.own.isReceiving else { return false }
            change(&machine)
            return true
        }
        guard isReceiving else { throw .receivingIsOff }
        try await waitUntilSettled(servers, timeout: timeout)
        return states.filter { servers.contains($0.key) }
    }

    func endRegistrations(timeout: Duration) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        try await runner.waitUntilRunning()
        let servers = runner.read { machine, _ in
            machine.registrations.servers.values.filter { $0.isWanted || $0.hasAccepted }.map(\.server)
        }
        turn { machine, _ in machine.setReceiving(false) }
        try await waitUntilSettled(servers, timeout: timeout)
        return states
    }

    private func waitUntilSettled(_ servers: [PublicKey], timeout: Duration) async throws(PushClientError) {
        let isSettled = await runner.wait(timeout) { machine, _ in machine.isSettled(servers) ? true : nil }
        if isSettled == nil, Task.isCancelled { throw .cancelled }
    }

    var states: [PublicKey: RegistrationStatus] {
        runner.read { machine, _ in machine.registrations.servers.mapValues(\.status) }
    }

    /// Looks up the latest advertisement, which may replace everything that is known about the registrant, and queries servers.
    ///
    /// - Parameter servers: Servers to query in any case, besides those that the client knows.
    func findDevices(
        of registrant: PublicKey, askingAlso servers: [PublicKey] = [], timeout: Duration
    ) async throws(PushClientError) -> [KnownDevice] {
        try await runner.waitUntilRunning()
        let start = ContinuousClock.now
        func timeLeft() -> Duration { max(timeout - (ContinuousClock.now - start), .zero) }
        turn { machine, _ in machine.watch(registrant) }
        turn { $0.refresh(registrant, also: servers, at: $1) }
        // A store that does not answer is waited for longer only while there is no server to query.
        let isDiscovered: @Sendable (Machine, Timestamp) -> Bool? = { $0.isDiscovered(registrant, at: $1) ? true : nil }
        let key = RecordKey.registrant(registrant)
        if await runner.wait(min(timeout, NotificationMachine.sourceLimit), about: key, isDiscovered) == nil {
            _ = await runner.wait(timeLeft(), about: key) { $0.directory.servers(of: registrant).isEmpty ? isDiscovered($0, $1) : true }
        }
        // An advertisement that was found may name servers to query.
        turn { $0.refresh(registrant, at: $1) }
        _ = await runner.wait(timeLeft(), about: key) { $0.isQueryPending(about: registrant, at: $1) ? nil : true }
        if Task.isCancelled { throw .cancelled }
        let found = knownDevices(of: registrant)
        guard found.isEmpty, servers.isEmpty else { return found }
        let isServerless = runner.read { machine, _ in
            machine.surroundings.isServerless(registrant) && machine.advertisementFlaws[registrant] == nil
        }
        if isServerless {
            runner.report(.noServerKnown(registrant))
            throw .noServerKnown
        }
        return found
    }

    /// Waits until a store or a server answered about the registrant.
    ///
    /// - Returns: false if none did within the timeout, or none can any more: known devices are those of an earlier run.
    func waitForAnswer(about registrant: PublicKey, timeout: Duration) async -> Bool {
        await runner.wait(timeout, about: .registrant(registrant)) { machine, _ in machine.isAnswered(about: registrant) } ?? false
    }

    func knownDevices(of registrant: PublicKey) -> [KnownDevice] {
        runner.read { machine, _ in machine.directory.validRows(of: registrant) }.map { row in
            KnownDevice(
                installationID: row.installationID, server: row.server, version: row.version, isTokenKnown: row.accessToken != nil)
        }
    }

    func outcomesWithoutDevices(of registrant: PublicKey) -> [DeviceOutcome] {
        let isWithdrawn = runner.read { machine, _ in
            !machine.directory.rows(of: registrant).isEmpty && machine.directory.isWithdrawn(registrant)
        }
        return isWithdrawn ? [DeviceOutcome(registrant: registrant, installationID: nil, result: .gaveUp(.notRegistered))] : []
    }

    /// - Parameters:
    ///   - contentByteLimit: The longest content of a notification, encrypted.
    ///   - chat: The hash of the message's chat.
    ///   - author: The hash of its author; empty if the protocol has none.
    func notify(
        _ message: OutgoingNotification, contentByteLimit: Int, chat: [UInt8], author: [UInt8]
    ) async throws(PushClientError) -> [DeviceOutcome] {
        guard runner.read({ machine, _ in machine.own.isSending }) else { throw .sendingIsOff }
        let id = message.messageID
        guard (1...OutgoingNotification.messageIDByteLimit).contains(id.count) else { throw .unusableMessageID }
        guard message.content.count <= contentByteLimit else { throw .tooLong }
        try await runner.waitUntilRunning()
        let isSending = runner.turn { machine, now in
            guard machine.own.isSending else { return false }
            machine.notify(message, chat: chat, author: author, at: now)
            return true
        }
        guard isSending else { throw .sendingIsOff }
        while true {
            let outcomes = await withTaskCancellationHandler {
                await runner.wait(nil, about: .message(id), whileRunning: true) { machine, _ -> [DeviceOutcome]? in
                    guard let record = machine.notifications.messages[id] else { return [] }
                    return record.isFinished ? record.outcomes : nil
                }
            } onCancel: {
                turn { machine, _ in machine.notifications.cancel(id) }
            }
            if let outcomes { return outcomes }
            // A client that is started again soon goes on with the message.
            do throws(PushClientError) { try await runner.waitUntilRunning() } catch {
                guard Task.isCancelled else { throw error }
            }
            if Task.isCancelled {
                turn { machine, _ in machine.notifications.cancel(id) }
                return runner.read { machine, _ in machine.notifications.messages[id]?.outcomes ?? [] }
            }
        }
    }
}
