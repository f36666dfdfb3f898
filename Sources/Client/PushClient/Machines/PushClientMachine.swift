import StatusProtocol
import Core
import WakuCrypto

/// A complete client without I/O or clock. Input: requests, answers and time. Output: changes to store, messages to publish, and the next wake-up
/// time.
///
/// It combines four parts: registrations, advertising, the directory with its queries, and notifications. The versions of the protocol differ in
/// registrations, in how the directory learns about devices, and in their messages.
protocol PushClientMachine: Sendable {
    associatedtype Version: ClientVersion
    associatedtype Registrations: RegistrationStates where Registrations.Server == Version.Server
    associatedtype Devices: DeviceDirectory
    typealias Record = MachineRecord<Version>
    typealias Action = MachineAction<Version>
    typealias Output = MachineOutput<Version>

    var publicKey: PublicKey { get }
    var own: Version.Own { get set }
    var isOwnChanged: Bool { get set }
    var registrations: Registrations { get set }
    var directory: Devices { get set }
    var queries: QueryTable { get set }
    var notifications: NotificationMachine { get set }
    var advertising: AdvertisingMachine { get set }
    /// Registrants whose latest advertisement was rejected, wholly or in part.
    var advertisementFlaws: [PublicKey: AdvertisementFlaw] { get set }
    var isStarted: Bool { get }
    var jitter: Jitter { get set }
    var actions: [Action] { get set }

    /// Called at the beginning of each run to resume unfinished work. In a second run of the same process, requests of the first run are no longer
    /// pending.
    mutating func start(at now: Timestamp) -> Output
    mutating func wake(at now: Timestamp) -> Output
    /// Whether servers are known that can be queried about any registrant.
    var listsServers: Bool { get }
    /// Whether the next advertisement is not empty.
    var hasSomethingToAdvertise: Bool { get }
    func advertisement(at now: Timestamp) -> Version.Advertisement
    /// Enables receiving with the last registered profile, or disables it, which ends the device's registrations.
    mutating func setReceiving(_ isReceiving: Bool, at now: Timestamp) -> Output
    mutating func query(_ registrant: PublicKey, at now: Timestamp)
    /// Called when a query ended without an answer about this client's own registration.
    mutating func ended(_ query: QueryTable.Query, at now: Timestamp)
    /// Turns the actions of ``registrations`` into ``actions``.
    mutating func collectRegistrations(at now: Timestamp)
}

/// The values in which the versions of the protocol differ.
protocol ClientVersion: Sendable {
    /// A registration to publish.
    associatedtype Registration: Hashable, Sendable
    /// The way of a query to the servers.
    associatedtype QueryRoute: Hashable, Sendable
    associatedtype Advertisement: Hashable, Sendable
    associatedtype Own: OwnState
    associatedtype Server: RegistrationState

    /// Begins the names of the records in the store.
    static var recordPrefix: String { get }
}

/// The client's own settings.
protocol OwnState: Codable, Hashable, Sendable {
    var installationID: InstallationID { get }
    var isReceiving: Bool { get }
    var isSending: Bool { get set }
    /// The servers of the last `register`.
    var serverKeys: [PublicKey] { get }
    /// The latest time of the next advertisement.
    var advertisesAt: Timestamp? { get set }
    /// The client's time when this was written. It never goes back, even if the system clock does.
    var time: Timestamp { get set }
    /// ``SteadyClock/lead`` in nanoseconds; nil stands for 0.
    var lead: Int64? { get set }
}

extension OwnState {
    var steadyLead: Duration { .nanoseconds(lead ?? 0) }
}

/// The registration with each server.
protocol RegistrationStates: Sendable {
    associatedtype Server: RegistrationState
    associatedtype Action

    var servers: [PublicKey: Server] { get set }
    /// The actions since the last ``takeActions()``.
    var actions: [Action] { get set }
    /// The servers whose registration changed since the last ``takeChanges()``.
    var changed: Set<PublicKey> { get set }
}

extension RegistrationStates {
    var nextWakeUp: Timestamp? { servers.values.compactMap(\.nextWakeUp).min() }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    mutating func takeChanges() -> Set<PublicKey> {
        defer { changed = [] }
        return changed
    }

    /// Whether the registration with a server that is not wanted any more is kept: until one of the wanted servers has one, since a wrong key among
    /// the new servers must not leave the device without any.
    func isKept(_ server: PublicKey) -> Bool {
        guard let record = servers[server], !record.isWanted, record.isRegistered, !record.isPending else { return false }
        let wanted = servers.values.filter(\.isWanted)
        return !wanted.isEmpty && !wanted.contains(where: \.replacesOthers)
    }

    mutating func update(_ server: PublicKey, _ body: (inout Server) -> Void) {
        guard var record = servers[server] else { return }
        body(&record)
        servers[server] = record
        changed.insert(server)
    }
}

protocol RegistrationState: Codable, Hashable, Sendable {
    var server: PublicKey { get }
    var status: RegistrationStatus { get }
    /// Whether it is one of the servers to be registered with.
    var isWanted: Bool { get }
    /// Whether the server accepted a registration of this device, which was not ended since.
    var isRegistered: Bool { get }
    /// Whether servers that are not wanted any more may be left, since this one has a registration.
    var replacesOthers: Bool { get }
    /// Whether the server has not given a final answer.
    var isPending: Bool { get }
    /// The end of the pause after a failure; nil when none is under way.
    var pausedUntil: Timestamp? { get }
    /// The earliest deadline; nil when none is pending.
    var nextWakeUp: Timestamp? { get }
}

// MARK: - Time

extension PushClientMachine {
    /// Stores the lead of this process's clock with the first changes.
    mutating func follow(_ clock: SteadyClock) {
        guard clock.lead != own.steadyLead else { return }
        own.lead = clock.lead.nanoseconds
        isOwnChanged = true
    }

    /// The latest time to call ``wake(at:)``; nil when no deadline is pending.
    var nextWakeUp: Timestamp? {
        [registrations.nextWakeUp, notifications.nextWakeUp, queries.nextWakeUp, advertising.nextWakeUp].compactMap(\.self).min()
    }

    /// Whether an action remains due in a later run. ``start(at:)`` recreates all others.
    static func outlivesRun(_ action: Action) -> Bool {
        switch action {
        case .report, .unwatch: true
        case .register, .query, .request, .advertise, .watch, .lookUp: false
        }
    }

    /// Lets every machine act, and collects their output. This terminates because each message queries once per round.
    mutating func settle(at now: Timestamp) -> Output {
        // The output of one machine may unblock another: a query that can't be sent ends at once.
        repeat { wakeNotifications(at: now) } while collect(at: now)
        if isStarted, advertising.wake(at: now) { actions.append(.advertise(advertisement(at: now))) }
        var output = Output(actions: actions)
        actions = []
        for key in registrations.takeChanges() { output.changes[.server(key)] = .some(registrations.servers[key].map(Record.server)) }
        for key in directory.takeChanges() { output.changes[.registrant(key)] = .some(directory.registrants[key].map(Record.registrant)) }
        for id in notifications.takeChanges() { output.changes[.message(id)] = .some(notifications.messages[id].map(Record.message)) }
        if isOwnChanged || !output.changes.isEmpty {
            own.time = max(own.time, now)
            output.changes[.own] = .own(own)
            isOwnChanged = false
        }
        return output
    }

    private mutating func wakeNotifications(at now: Timestamp) {
        guard notifications.isActive else { return }
        let (directory, listsServers) = (directory, listsServers)
        notifications.queried = queries.registrants
        notifications.unanswered = queries.unanswered(at: now)
        notifications.serverless = listsServers ? [] : directory.lookUpsEnded.filter { directory.servers(of: $0).isEmpty }
        let this = (publicKey, own.installationID)
        var jitter = jitter
        notifications.wake(
            directory, askable: { listsServers || !directory.servers(of: $0).isEmpty }, own: this, at: now, jitter: &jitter)
        self.jitter = jitter
    }

    /// - Returns: Whether a change may let the machines continue.
    private mutating func collect(at now: Timestamp) -> Bool {
        collectRegistrations(at: now)
        var goesOn = false
        for action in notifications.takeActions() {
            switch action {
            case .query(let registrant):
                query(registrant, at: now)
                goesOn = true
            case .request(let ticket, let server, let request): actions.append(.request(ticket, server: server, request))
            case .report(let event): actions.append(.report(event))
            }
        }
        return goesOn
    }
}

// MARK: - Requests of the application

extension PushClientMachine {
    /// Enables or disables sending. When disabled, nothing more is sent for any message.
    mutating func setSending(_ isSending: Bool, at now: Timestamp) -> Output {
        guard own.isSending != isSending else { return Output() }
        own.isSending = isSending
        isOwnChanged = true
        if !isSending { notifications.cancelAll() }
        return settle(at: now)
    }

    /// Subscribes to a registrant's advertisements.
    mutating func discover(_ registrant: PublicKey, at now: Timestamp) -> Output {
        watch(registrant)
        return settle(at: now)
    }

    private mutating func watch(_ registrant: PublicKey) {
        // Before the start, there is nothing to do: the start looks up all watched registrants at once.
        let isNew = directory.watch(registrant)
        guard isStarted else { return }
        if isNew { actions.append(.watch([registrant])) }
        if directory.beginLookUp(of: registrant) { actions.append(.lookUp([registrant])) }
    }

    /// Whether any server can be queried about the registrant.
    func isAskable(_ registrant: PublicKey) -> Bool {
        listsServers || !directory.servers(of: registrant).isEmpty
    }

    /// Whether no advertisement of the registrant is known or can be looked up, and no server can be queried.
    func isServerless(_ registrant: PublicKey) -> Bool {
        directory.lookUpsEnded.contains(registrant) && !isAskable(registrant)
    }

    /// Whether the search for the registrant's devices ended. A failed look-up counts only when servers are known: the relay may be about to attach.
    func isDiscovered(_ registrant: PublicKey, at now: Timestamp) -> Bool {
        guard !directory.isLookingUp(registrant), !isQueryPending(about: registrant, at: now) else { return false }
        return directory.lookUpsEnded.contains(registrant) || !directory.servers(of: registrant).isEmpty
    }

    /// Whether a query is under way that may find other devices of the registrant.
    func isQueryPending(about registrant: PublicKey, at now: Timestamp) -> Bool {
        queries.isUnderWay(about: registrant) && directory.awaitsAnswers(about: registrant, knownDevices(of: registrant, at: now))
    }

    private func knownDevices(of registrant: PublicKey, at now: Timestamp) -> KnownInstallations {
        directory.devices(of: registrant, besides: registrant == publicKey ? own.installationID : nil, at: now)
    }

    /// Whether each of these servers gave a final answer.
    func isSettled(_ servers: [PublicKey]) -> Bool {
        servers.allSatisfy { registrations.servers[$0]?.isPending != true }
    }

    /// Removes all state about a registrant, ends the subscription to its advertisements, and notifies its devices no more.
    mutating func forget(_ registrant: PublicKey, at now: Timestamp) -> Output {
        directory.forget(registrant)
        queries.forget(registrant)
        notifications.forget(registrant)
        actions.append(.unwatch(registrant))
        advertisementFlaws[registrant] = nil
        return settle(at: now)
    }

    mutating func noteActivity(of installationID: InstallationID, of registrant: PublicKey, at now: Timestamp) -> Output {
        directory.noteActivity(of: installationID, of: registrant, at: now)
        return settle(at: now)
    }

    /// Requests notifications for a message. Sending must be enabled.
    ///
    /// - Parameters:
    ///   - chat: The hash of its chat, in the protocol's form.
    ///   - author: The hash of its author; empty if the protocol has none.
    mutating func notify(_ message: OutgoingNotification, chat: [UInt8], author: [UInt8], at now: Timestamp) -> Output {
        for recipient in message.recipients where recipient.registrant != publicKey { watch(recipient.registrant) }
        notifications.notify(message, chat: chat, author: author, own: (publicKey, own.installationID), at: now)
        return settle(at: now)
    }

    mutating func cancel(_ messageID: [UInt8], at now: Timestamp) -> Output {
        notifications.cancel(messageID)
        return settle(at: now)
    }
}

// MARK: - Results of publications, and incoming messages

extension PushClientMachine {
    mutating func ended(_ query: QueryTable.Query, at now: Timestamp) {}

    mutating func queryPublished(_ ticket: QueryTable.Ticket, isPublished: Bool, at now: Timestamp) -> Output {
        if isPublished { queries.published(ticket, at: now) } else if let query = queries.end(ticket) { ended(query, at: now) }
        return settle(at: now)
    }

    mutating func requestPublished(_ ticket: NotificationMachine.Ticket, isPublished: Bool, at now: Timestamp) -> Output {
        if isPublished {
            notifications.published(ticket, at: now)
        } else {
            var jitter = jitter
            notifications.notPublished(ticket, at: now, jitter: &jitter)
            self.jitter = jitter
        }
        return settle(at: now)
    }

    mutating func advertisementPublished(rowCount: Int, isPublished: Bool, at now: Timestamp) -> Output {
        let random = jitter.next()
        if isPublished {
            // Not repeated once this device is unregistered: the account's other devices advertise themselves, and this client's knowledge of
            // them becomes outdated.
            advertising.published(goesOn: own.isReceiving && hasSomethingToAdvertise, at: now, jitter: random)
            own.advertisesAt = advertising.nextWakeUp
            isOwnChanged = true
            actions.append(.report(.advertised(rowCount: rowCount)))
        } else {
            advertising.notPublished(at: now, jitter: random)
        }
        return settle(at: now)
    }

    mutating func lookUpEnded(_ registrants: [PublicKey], _ result: LookUpResult, at now: Timestamp) -> Output {
        directory.endLookUps(of: registrants, result)
        // The look-up subscribed again to the topics of registrants who were forgotten meanwhile.
        for registrant in registrants where registrant != publicKey && directory.registrants[registrant]?.isWatched != true {
            actions.append(.unwatch(registrant))
        }
        return settle(at: now)
    }

    /// Records the reading of an advertisement that its owner signed.
    mutating func learned(from owner: PublicKey, _ reading: (isNews: Bool, isWhole: Bool), at now: Timestamp) -> Output {
        if reading.isNews { discovered(owner) }
        if reading.isWhole { advertisementFlaws[owner] = nil } else { reject(owner, .badRow) }
        return settle(at: now)
    }

    /// Records that a message on a registrant's topic was not a valid advertisement of that registrant.
    mutating func advertisementRejected(of registrant: PublicKey, _ flaw: AdvertisementFlaw, at now: Timestamp) -> Output {
        guard directory.registrants[registrant]?.isWatched == true else { return Output() }
        reject(registrant, flaw)
        return settle(at: now)
    }

    private mutating func reject(_ registrant: PublicKey, _ flaw: AdvertisementFlaw) {
        advertisementFlaws[registrant] = flaw
        actions.append(.report(.advertisementRejected(registrant, flaw)))
    }

    mutating func discovered(_ registrant: PublicKey) {
        let count = Set(directory.validRows(of: registrant).map(\.installationID)).count
        actions.append(.report(.discovered(registrant, deviceCount: count)))
    }

    /// Records a server's answers about the devices of a request.
    mutating func requestAnswered(
        _ ticket: NotificationMachine.Ticket, by server: PublicKey, at now: Timestamp,
        verdict: (NotificationMachine.DeviceID) -> NotificationVerdict?
    ) -> Output {
        for refusal in notifications.answered(ticket, by: server, at: now, verdict: verdict) { directory.refused(refusal, at: now) }
        return settle(at: now)
    }

    /// Whether servers are to be queried about a registrant: no token is usable, or another device may be registered.
    func needsQuery(about registrant: PublicKey, at now: Timestamp) -> Bool {
        directory.needsQuery(about: registrant, knownDevices(of: registrant, at: now), at: now)
    }

    /// Ends a query about a registrant when every server answered, or everything that messages wait for is known.
    mutating func endIfAnswered(_ ticket: QueryTable.Ticket, _ query: QueryTable.Query) {
        let isComplete = queries.isComplete(ticket)
        guard isComplete || notifications.knowsAll(of: query.registrant, directory, since: query.begun), queries.end(ticket) != nil else {
            return
        }
        if isComplete { notifications.queryEnded(about: query.registrant, wasAnswered: true) }
    }

    /// Ends the queries whose deadline passed.
    mutating func expireQueries(at now: Timestamp) -> [QueryTable.Query] {
        let expired = queries.expire(at: now)
        for query in expired where query.ownCheckAt == nil { notifications.queryEnded(about: query.registrant, wasAnswered: false) }
        return expired
    }
}
