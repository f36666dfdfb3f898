import StatusProtocol
import Core
import WakuCrypto

/// A complete client without I/O or clock. Input: requests, answers and time. Output: changes to store, messages to publish, and the next wake-up
/// time.
///
/// It combines four parts: registrations, advertising, the directory with its queries, and notifications. The versions of the protocol differ in
/// registrations, in how the directory learns about devices, and in their messages.
struct PushClientMachine<Version: ClientVersion>: Sendable {
    typealias Record = MachineRecord<Version>
    typealias Action = MachineAction<Version>
    typealias Output = MachineOutput<Version>

    var registrations: Version.Registrations
    var directory: Directory
    private(set) var queries = QueryTable()
    var notifications: NotificationMachine
    private(set) var advertising: AdvertisingMachine
    /// Registrants whose latest advertisement was rejected, wholly or in part.
    private(set) var advertisementFlaws: [PublicKey: AdvertisementFlaw] = [:]
    /// Servers to query about others besides those that this client is registered with. Set by the application at each start.
    var contactServers: [PushServer] = []
    /// Registrants about whom anything changed since the last output.
    private var affected: Set<PublicKey> = []
    private var isStarted = false
    private var jitter: Jitter
    private var actions: [Action] = []

    init(
        _ restored: RecordsByKind<Version>, _ registrations: Version.Registrations, _ cryptography: any ClientCryptography,
        _ jitter: Jitter, at now: Timestamp
    ) {
        self.registrations = registrations
        self.jitter = jitter
        directory = Directory(cryptography: cryptography, restoring: restored.registrants)
        notifications = NotificationMachine(restoring: restored.messages, queriesOnceAfterRefusal: Version.queriesOnceAfterRefusal)
        advertising = AdvertisingMachine(isActive: false, at: now)
    }

    var publicKey: PublicKey { directory.cryptography.publicKey }

    var own: Version.Own {
        get { registrations.own }
        set { registrations.own = newValue }
    }

    var isOwnChanged: Bool {
        get { registrations.isOwnChanged }
        set { registrations.isOwnChanged = newValue }
    }
}

// MARK: - Time

extension PushClientMachine {
    /// Called at the beginning of each run: resumes unfinished work, advertises the client's devices, and looks up advertisements published
    /// meanwhile. In a second run of the same process, requests of the first run are no longer pending.
    mutating func start(at now: Timestamp) {
        if isStarted {
            for query in queries.endAll() where query.ownCheckAt == nil {
                self.query(query.registrant, also: Array(query.servers), at: now)
            }
            notifications.resume()
        }
        isStarted = true
        notifications.forgetOldOutcomes(at: now)
        registrations.resume(at: now, jitter: &jitter)
        advertising = AdvertisingMachine(isActive: registrations.advertisesAtStart, at: now)
        var watched = directory.watched
        if Version.watchesOwnDevices, own.isReceiving, !watched.contains(publicKey) { watched.append(publicKey) }
        watched.sort { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        directory.beginRun(lookingUp: watched, at: now)
        notifications.active.noteNews()
        if !watched.isEmpty {
            actions.append(.watch(watched))
            actions.append(.lookUp(watched))
        }
        wake(at: now)
    }

    mutating func wake(at now: Timestamp) {
        registrations.wake(at: now, jitter: &jitter)
        for query in queries.expire(at: now) {
            if query.ownCheckAt == nil { notifications.queryEnded(about: query.registrant, wasAnswered: false) }
            ended(query, at: now)
        }
    }

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

    /// Called after each event: lets every part act, and collects the output. This terminates because each message queries once per round.
    mutating func settle(at now: Timestamp) -> Output {
        while let (ticket, registrant, servers) = queries.beginWaiting(at: now, isNeeded: notifications.isUnfinished) {
            send(ticket, about: registrant, to: servers, at: now)
        }
        // The output of one machine may unblock another: a query that can't be sent ends at once.
        repeat { wakeNotifications(at: now) } while collect(at: now)
        if isStarted, advertising.wake(at: now) { actions.append(.advertise(Version.advertisement(of: self, at: now))) }
        var output = Output(actions: actions, affected: affected)
        (actions, affected) = ([], [])
        for key in registrations.takeChanges() { output.changes[.server(key)] = .some(registrations.servers[key].map(Record.server)) }
        for key in directory.takeChanges() { output.changes[.registrant(key)] = .some(directory.registrants[key].map(Record.registrant)) }
        for id in notifications.takeChanges() { output.changes[.message(id)] = .some(notifications.messages[id].map(Record.message)) }
        if isOwnChanged || !output.changes.isEmpty {
            own.time = max(own.time, now)
            output.changes = output.changes.mapValues { [time = own.time] in $0?.stored(at: time) }
            // The own record has the contacts' lists, and may be large. Removed records keep no time.
            if isOwnChanged || output.changes.values.allSatisfy({ $0 == nil }) { output.changes[.own] = .own(own) }
            isOwnChanged = false
        }
        return output
    }

    private mutating func wakeNotifications(at now: Timestamp) {
        let news = directory.takeAffected().union(queries.takeAffected())
        notifications.active.noteNews(about: news)
        affected.formUnion(news)
        // Before the start, restored messages stay as they are.
        guard isStarted, notifications.isActive else { return }
        notifications.wake(surroundings, at: now, jitter: &jitter)
    }

    var surroundings: NotificationMachine.Surroundings {
        NotificationMachine.Surroundings(
            directory: directory, own: (publicKey, own.installationID), listsServers: !own.serverKeys.isEmpty || !contactServers.isEmpty,
            queries: queries)
    }

    /// - Returns: Whether a change may let the machines continue.
    private mutating func collect(at now: Timestamp) -> Bool {
        for action in registrations.takeActions() {
            switch action {
            // Before the start nothing is sent: the start sends every unpublished registration.
            case .send(let server, let registration): if isStarted { actions.append(.register(server: server, registration)) }
            case .checkOwn(let server): query(publicKey, ownCheckAt: server, at: now)
            case .rowsChanged: advertising.rowsChanged(at: now)
            case .report(let event): actions.append(.report(event))
            }
        }
        var goesOn = false
        for action in notifications.takeActions() {
            switch action {
            case .query(let registrant):
                query(registrant, at: now)
                notifications.active.noteNews(about: [registrant])
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
    /// Enables receiving with the last registered profile, or disables it, which ends the device's registrations.
    mutating func setReceiving(_ isReceiving: Bool) {
        guard own.isReceiving != isReceiving else { return }
        registrations.setReceiving(isReceiving)
    }

    /// Enables or disables sending. When disabled, nothing more is sent for any message.
    mutating func setSending(_ isSending: Bool) {
        guard own.isSending != isSending else { return }
        own.isSending = isSending
        isOwnChanged = true
        if !isSending { notifications.cancelAll() }
    }

    /// Follows the advertisements of the account's other devices.
    mutating func watchOwnDevices() { actions.append(.watch([publicKey])) }

    /// Queries the servers about a registrant, if that is needed.
    ///
    /// - Parameter others: Servers to query in any case, besides the known ones.
    mutating func refresh(_ registrant: PublicKey, also others: [PublicKey] = [], at now: Timestamp) {
        if !others.isEmpty || surroundings.isAskable(registrant) && needsQuery(about: registrant, at: now) {
            query(registrant, also: others, isForCaller: true, at: now)
        }
    }

    private mutating func query(
        _ registrant: PublicKey, also others: [PublicKey] = [], ownCheckAt server: PublicKey? = nil, isForCaller: Bool = false,
        at now: Timestamp
    ) {
        let servers = server.map { [$0] } ?? Version.servers(about: registrant, also: others, self)
        let ticket = queries.begin(registrant, servers: servers, ownCheckAt: server, isForCaller: isForCaller, at: now)
        guard let ticket else { return }
        send(ticket, about: registrant, to: servers, at: now)
    }

    /// Sends a query that has begun.
    private mutating func send(_ ticket: QueryTable.Ticket, about registrant: PublicKey, to servers: Set<PublicKey>, at now: Timestamp) {
        if queries.queries[ticket]?.ownCheckAt == nil { directory.noteQuery(about: registrant, at: now) }
        actions.append(.query(ticket, registrant: registrant, Version.route(to: servers, self)))
    }

    /// Subscribes to a registrant's advertisements.
    mutating func watch(_ registrant: PublicKey) { watch([registrant]) }

    private mutating func watch(_ registrants: [PublicKey]) {
        // Before the start, there is nothing to do: the start looks up all watched registrants at once.
        let new = registrants.filter { directory.watch($0) }
        guard isStarted else { return }
        if !new.isEmpty { actions.append(.watch(new)) }
        let unknown = registrants.filter { directory.beginLookUp(of: $0) }
        if !unknown.isEmpty { actions.append(.lookUp(unknown)) }
    }

    /// Whether the search for the registrant's devices ended. A failed look-up counts only when servers are known: the relay may be about to attach.
    func isDiscovered(_ registrant: PublicKey, at now: Timestamp) -> Bool {
        guard !directory.isLookingUp(registrant), !isQueryPending(about: registrant, at: now) else { return false }
        return directory.isLookedUp(registrant) || !directory.servers(of: registrant).isEmpty
    }

    /// Whether a store or a server answered about the registrant in this run; nil while one may.
    func isAnswered(about registrant: PublicKey) -> Bool? {
        if directory.isAnswered(about: registrant) { return true }
        return directory.isLookingUp(registrant) || queries.isUnderWay(about: registrant) ? nil : false
    }

    /// Whether a query is under way that may find other devices of the registrant.
    func isQueryPending(about registrant: PublicKey, at now: Timestamp) -> Bool {
        queries.isUnderWay(about: registrant) && directory.awaitsAnswers(about: registrant, knownDevices(of: registrant, at: now))
    }

    /// Whether servers are to be queried about a registrant: no token is usable, or another device may be registered.
    private func needsQuery(about registrant: PublicKey, at now: Timestamp) -> Bool {
        directory.needsQuery(about: registrant, knownDevices(of: registrant, at: now), at: now)
    }

    private func knownDevices(of registrant: PublicKey, at now: Timestamp) -> KnownInstallations {
        directory.devices(of: registrant, besides: registrant == publicKey ? own.installationID : nil, at: now)
    }

    /// Whether each of these servers gave a final answer.
    func isSettled(_ servers: [PublicKey]) -> Bool {
        servers.allSatisfy { registrations.servers[$0]?.isPending != true }
    }

    /// Removes all state about a registrant, ends the subscription to its advertisements, and notifies its devices no more.
    mutating func forget(_ registrant: PublicKey) {
        directory.forget(registrant)
        queries.forget(registrant)
        notifications.forget(registrant)
        actions.append(.unwatch(registrant))
        advertisementFlaws[registrant] = nil
    }

    /// Requests notifications for a message. Sending must be enabled.
    ///
    /// - Parameters:
    ///   - chat: The hash of its chat, in the protocol's form.
    ///   - author: The hash of its author; empty if the protocol has none.
    mutating func notify(_ message: OutgoingNotification, chat: [UInt8], author: [UInt8], at now: Timestamp) {
        watch(message.recipients.map(\.registrant).filter { $0 != publicKey })
        notifications.notify(message, chat: chat, author: author, own: (publicKey, own.installationID), at: now)
    }
}

// MARK: - Results of publications, and incoming messages

extension PushClientMachine {
    mutating func registrationPublished(_ requestID: [UInt8], to server: PublicKey, isPublished: Bool, at now: Timestamp) {
        if isPublished {
            registrations.published(requestID, to: server, at: now)
        } else {
            registrations.notPublished(requestID, to: server, at: now, jitter: jitter.next())
        }
    }

    /// Handles an answer to a registration signed by `server`.
    mutating func registrationAnswered(by server: PublicKey, _ response: Version.RegistrationResponse, at now: Timestamp) {
        registrations.answered(by: server, response, at: now, jitter: &jitter)
    }

    mutating func queryPublished(_ ticket: QueryTable.Ticket, isPublished: Bool, at now: Timestamp) {
        if isPublished { queries.published(ticket, at: now) } else if let query = queries.end(ticket) { ended(query, at: now) }
    }

    mutating func requestPublished(_ ticket: NotificationMachine.Ticket, isPublished: Bool, at now: Timestamp) {
        if isPublished {
            notifications.published(ticket, at: now)
        } else {
            notifications.notPublished(ticket, at: now, jitter: &jitter)
        }
    }

    mutating func advertisementPublished(rowCount: Int, isPublished: Bool, at now: Timestamp) {
        let random = jitter.next()
        if isPublished {
            // Not repeated once this device is unregistered: the account's other devices advertise themselves, and this client's knowledge of
            // them becomes outdated.
            advertising.published(goesOn: own.isReceiving && registrations.hasSomethingToAdvertise, at: now, jitter: random)
            own.advertisesAt = advertising.nextWakeUp
            isOwnChanged = true
            actions.append(.report(.advertised(rowCount: rowCount)))
        } else {
            advertising.notPublished(at: now, jitter: random)
        }
    }

    /// Called after a long time without messages, in which advertisements may have been missed. Those of contacts are looked up when they are needed,
    /// those of the account's other devices at once.
    mutating func messagesMissed() {
        let looksUpOwn = directory.isLookedUp(publicKey)
        directory.expireLookUps()
        if looksUpOwn, directory.beginLookUp(of: publicKey) { actions.append(.lookUp([publicKey])) }
    }

    mutating func lookUpEnded(_ registrants: [PublicKey], _ result: LookUpResult) {
        directory.endLookUps(of: registrants, result)
        // The look-up subscribed again to the topics of registrants who were forgotten meanwhile.
        for registrant in registrants where registrant != publicKey && directory.registrants[registrant]?.isWatched != true {
            actions.append(.unwatch(registrant))
        }
    }

    /// Records the reading of an advertisement that its owner signed.
    mutating func learned(from owner: PublicKey, _ reading: (isNews: Bool, isWhole: Bool)) {
        directory.noteAnswer(about: owner)
        if reading.isNews { discovered(owner) }
        if reading.isWhole { advertisementFlaws[owner] = nil } else { reject(owner, .badRow) }
    }

    /// Records that a message on a registrant's topic was not a valid advertisement of that registrant.
    mutating func advertisementRejected(of registrant: PublicKey, _ flaw: AdvertisementFlaw) {
        guard directory.registrants[registrant]?.isWatched == true else { return }
        reject(registrant, flaw)
    }

    private mutating func reject(_ registrant: PublicKey, _ flaw: AdvertisementFlaw) {
        advertisementFlaws[registrant] = flaw
        actions.append(.report(.advertisementRejected(registrant, flaw)))
    }

    private mutating func discovered(_ registrant: PublicKey) {
        let count = Set(directory.validRows(of: registrant).map(\.installationID)).count
        actions.append(.report(.discovered(registrant, deviceCount: count)))
    }

    mutating func requestAnswered(
        _ ticket: NotificationMachine.Ticket, by server: PublicKey, at now: Timestamp,
        verdict: (NotificationMachine.DeviceID) -> NotificationVerdict?
    ) {
        for refusal in notifications.answered(ticket, by: server, at: now, verdict: verdict) { directory.refused(refusal, at: now) }
    }

    /// Records a server's answer to a query.
    ///
    /// - Parameters:
    ///   - ownRow: The server's row for this installation, in an answer about this client's own registration.
    ///   - learn: Adds the rows of any other answer to the directory. Returns whether devices or their servers changed.
    mutating func queryAnswered(
        _ ticket: QueryTable.Ticket, by server: PublicKey, ownRow: (version: UInt64, grant: [UInt8])? = nil, at now: Timestamp,
        learn: (inout Directory, _ registrant: PublicKey) -> Bool
    ) {
        guard let query = queries.answered(ticket, by: server) else { return }
        if query.ownCheckAt == nil {
            directory.noteAnswer(about: query.registrant)
            if learn(&directory, query.registrant) { discovered(query.registrant) }
            endIfAnswered(ticket, query)
        } else if let query = queries.end(ticket) {
            ended(query, row: ownRow, at: now)
        }
    }

    /// Ends a query about a registrant when every server answered, or everything that messages wait for is known.
    private mutating func endIfAnswered(_ ticket: QueryTable.Ticket, _ query: QueryTable.Query) {
        let isComplete = queries.isComplete(ticket)
        guard isComplete || notifications.knowsAll(of: query.registrant, directory, since: query.begun), queries.end(ticket) != nil else {
            return
        }
        if isComplete { notifications.queryEnded(about: query.registrant, wasAnswered: true) }
    }

    private mutating func ended(_ query: QueryTable.Query, row: (version: UInt64, grant: [UInt8])? = nil, at now: Timestamp) {
        if let server = query.ownCheckAt { registrations.checked(server, row: row, at: now, jitter: &jitter) }
    }
}

// MARK: - Output

/// An action for the driver of a machine, to perform after the accompanying changes were stored.
enum MachineAction<Version: ClientVersion>: Hashable, Sendable {
    case register(server: PublicKey, Version.Registration)
    case query(QueryTable.Ticket, registrant: PublicKey, Version.QueryRoute)
    case request(NotificationMachine.Ticket, server: PublicKey, NotificationRequest)
    case advertise(Version.Advertisement)
    case watch([PublicKey])
    /// End the subscription to the contact code topic of this registrant. Performed in order with ``watch(_:)``, so that the later of both counts.
    case unwatch(PublicKey)
    case lookUp([PublicKey])
    case report(PushClientEvent)
}

/// The result of handling an event: changes to store first, then actions to perform.
struct MachineOutput<Version: ClientVersion>: Sendable {
    /// nil removes the record.
    var changes: [RecordKey: MachineRecord<Version>?] = [:]
    var actions: [MachineAction<Version>] = []
    /// Registrants about whom anything changed, stored or not, as at the end of a look-up.
    var affected: Set<PublicKey> = []

    /// Whether there is nothing to store or to perform.
    var isEmpty: Bool { changes.isEmpty && actions.isEmpty }
}
