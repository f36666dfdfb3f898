import Core
public import StatusProtocol
import Synchronization
public import Waku
public import WakuCrypto

/// A client of push servers of version 0.1: keeps the account's record registered, advertises its devices, discovers the devices of contacts, and
/// requests notifications for them.
///
/// One client has one account and any number of servers, which all get the same record. It accepts only answers signed by the server and
/// advertisements signed by the registrant. It registers nothing before receiving is enabled, and notifies no device before sending is enabled:
/// ``setReceiving(_:)``, ``setSending(_:)``.
///
/// Messages are sent and received only while ``run()`` runs. The store may be shared with a ``StatusPushClient`` of the same identity, but used by
/// only one of them at a time.
public final class StatusV01PushClient: Sendable {
    let identity: PrivateKey
    let network: ClientNetwork
    let runner: MachineRunner<V01Machine>
    let routes = Mutex(Routes())

    /// The subscribed topics, and the pending question or registrant that each belongs to.
    struct Routes: Sendable {
        enum Question: Sendable {
            /// The key that the answers are encrypted to.
            case query(QueryTable.Ticket, PrivateKey)
            case request(NotificationMachine.Ticket, V01.AckKey)
        }

        var tickets = AnswerTickets<Question>()
        /// Contact code topics that the client subscribes to.
        var contactCodes: [ContentTopic: PublicKey] = [:]
    }

    private init(
        identity: PrivateKey, relay: any Relay, store: any ClientStore, records: [V01Record],
        _ configuration: StatusPushClient.Configuration
    ) {
        self.identity = identity
        network = ClientNetwork(relay: relay, pubsubTopic: configuration.pubsubTopic)
        var kept: Timestamp?
        for case .own(let record) in records { kept = record.time }
        let clock = SteadyClock(kept: kept, clock: .now(), uptime: SteadyClock.uptime)
        var machine = V01Machine(
            records: records, installationID: InstallationID(bytes: AccessToken.random().bytes), identity: identity,
            at: clock.time(at: SteadyClock.uptime))
        machine.notifications.deviceLimit = max(configuration.deviceLimit, NotificationMachine.defaultDeviceLimit)
        runner = MachineRunner(machine, clock: clock, store: store)
    }

    /// Opens a client that continues from its stored state, even after its process was killed.
    ///
    /// - Parameters:
    ///   - identity: The account's key.
    ///   - relays: One or more connections to the network.
    ///   - store: The client's state.
    ///   - configuration: The device limit is raised to at least three; bundles are not used.
    /// - Throws: ``ClientStoreError``
    public static func open(
        identity: PrivateKey, relays: [any Relay], store: any ClientStore,
        configuration: StatusPushClient.Configuration = StatusPushClient.Configuration()
    ) async throws(ClientStoreError) -> StatusV01PushClient {
        var records: [V01Record] = []
        for (name, value) in try await store.load().sorted(by: { $0.key < $1.key }) where V01Record.isName(name) {
            records.append(try V01Record(name, value))
        }
        let relay = relays.count == 1 ? relays[0] : RelaySet(relays)
        return StatusV01PushClient(identity: identity, relay: relay, store: store, records: records, configuration)
    }

    /// The account's public key.
    public var publicKey: PublicKey { identity.publicKey }

    /// The id of this device's installation.
    public var installationID: InstallationID { runner.read { machine, _ in machine.own.installationID } }

    /// Runs until cancelled: registers, advertises, sends requests, and receives answers.
    ///
    /// After a cancellation, as after a kill, unfinished work resumes with the next call or the next start of the process.
    /// If another call is running, waits for it to end first.
    public func run() async {
        // Answers to earlier requests may still arrive.
        let isAwaiting = runner.read { machine, _ in machine.registrations.servers.values.contains { $0.attempt != nil } }
        if isAwaiting { network.watching.keep([StatusPushClient.answerTopic(identity.publicKey)]) }
        await runner.run(network.relay, deliver: { [self] in take($0) }, perform: { [self] in begin($0, in: &$1) })
    }

    /// Events from now on. Beyond a thousand unread events, the oldest are dropped.
    public var events: AsyncStream<PushClientEvent> { runner.events }

    func turn(_ body: (inout V01Machine, Timestamp) -> V01Output) {
        runner.turn { (body(&$0, $1), ()) }
    }

    // MARK: Opting in

    /// Whether the client keeps its device registered: false in a new client, and stored.
    public var isReceiving: Bool { runner.read { machine, _ in machine.own.isReceiving } }
    /// Whether the client may request notifications: false in a new client, and stored.
    public var isSending: Bool { runner.read { machine, _ in machine.own.isSending } }

    /// Allows the client to register its device. When disabled, the client removes the device from all servers and retries until they answer.
    public func setReceiving(_ isReceiving: Bool) {
        turn { $0.setReceiving(isReceiving, at: $1) }
    }

    /// Allows the client to request notifications. When disabled, nothing more is sent for pending messages.
    public func setSending(_ isSending: Bool) {
        turn { $0.setSending(isSending, at: $1) }
    }

    // MARK: Receiving

    /// Registers the device with exactly these servers, as part of the account's record, which is the same at each. Sends nothing when
    /// nothing changed. Servers that don't answer within the timeout are retried while the client runs, also after a restart.
    ///
    /// - Parameters:
    ///   - profile: The device and its user's settings.
    ///   - servers: The complete list; at least one.
    ///   - enablesReceiving: Whether to enable receiving as ``setReceiving(_:)`` does. Calling ``setReceiving(_:)`` first would register the
    ///     previous profile before this one.
    ///   - timeout: How long to wait for the servers.
    /// - Returns: The state at each of these servers, once all answered or the timeout passed.
    /// - Throws: ``PushClientError`` with `notEnabled` or `invalid`
    @discardableResult
    public func register(
        _ profile: V01DeviceProfile, with servers: [PublicKey], enablesReceiving: Bool = false, timeout: Duration = .seconds(30)
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        guard !servers.isEmpty else { throw PushClientError(code: .invalid, message: "there is no server to register with") }
        guard !profile.deviceToken.isEmpty else {
            throw PushClientError(code: .invalid, message: "the device can't be registered: the device token is empty")
        }
        let isReceiving = runner.turn { machine, now in
            guard enablesReceiving || machine.own.isReceiving else { return (V01Output(), false) }
            return (machine.register(profile, with: servers, at: now), true)
        }
        guard isReceiving else { throw .receivingIsOff }
        _ = await runner.wait(timeout) { $0.isSettled(servers) ? true : nil }
        return registrations.filter { servers.contains($0.key) }
    }

    /// Removes the device from the account's record at all servers; if it was the only device, that ends the account's registration. Servers that
    /// don't answer within the timeout are retried.
    ///
    /// - Returns: The state at each server.
    @discardableResult
    public func unregister(timeout: Duration = .seconds(30)) async -> [PublicKey: RegistrationStatus] {
        let servers = Array(registrations.keys)
        turn { $0.setReceiving(false, at: $1) }
        _ = await runner.wait(timeout) { $0.isSettled(servers) ? true : nil }
        return registrations
    }

    /// The state at each server.
    public var registrations: [PublicKey: RegistrationStatus] {
        runner.read { machine, _ in machine.registrations.servers.mapValues(\.status) }
    }

    /// The servers of the last `register`, also after the device was unregistered, without servers that are being left.
    package var wantedServers: [PublicKey] { runner.read { machine, _ in machine.own.servers } }

    /// The time until a server that did not answer, or failed, is retried; nil when no retry is scheduled.
    public func nextTry(at server: PublicKey) -> Duration? {
        runner.read { machine, now in
            guard case .paused(let until) = machine.registrations.servers[server]?.attempt?.state else { return nil }
            return max(until.time.since(now), .zero)
        }
    }

    /// Waits until all changes were stored.
    package func waitUntilStored(timeout: Duration) async {
        _ = await runner.wait(timeout) { _ in true }
    }

    /// Waits until the current advertisement was published or failed.
    package func waitUntilAdvertised(timeout: Duration) async {
        _ = await runner.wait(timeout) { $0.advertising.isUnderWay ? nil : true }
    }

    // MARK: Others

    /// Watches a registrant's advertisements from now on, looks up the latest one in the relay's store, and queries servers if it contains no access
    /// token.
    ///
    /// - Parameters:
    ///   - registrant: The owner of the devices.
    ///   - servers: Servers to query in any case, besides the known ones.
    ///   - timeout: How long to wait for servers.
    /// - Returns: The devices known by then. Version 0.1 has no version per device.
    @discardableResult
    public func discover(_ registrant: PublicKey, askingAlso servers: [PublicKey] = [], timeout: Duration = .seconds(10)) async
        -> [KnownDevice]
    {
        let start = ContinuousClock.now
        turn { $0.discover(registrant, at: $1) }
        turn { $0.refresh(registrant, also: servers, at: $1) }
        _ = await runner.wait(timeout / 2) { $0.isDiscovering(registrant) ? nil : true }
        // An advertisement that was found may name servers to query.
        turn { $0.refresh(registrant, also: [], at: $1) }
        _ = await runner.wait(timeout - (ContinuousClock.now - start)) { $0.queries.isUnderWay(about: registrant) ? nil : true }
        return devices(of: registrant)
    }

    /// The known devices of a registrant.
    public func devices(of registrant: PublicKey) -> [KnownDevice] {
        runner.read { machine, _ in machine.directory.rows(of: registrant) }.map { row in
            KnownDevice(installationID: row.installationID, server: row.server, version: 0, isTokenKnown: row.accessToken != nil)
        }
    }

    /// Why the registrant's latest advertisement of this run was rejected, wholly or in part; nil when it was accepted, or none arrived.
    public func advertisementFlaw(of registrant: PublicKey) -> AdvertisementFlaw? {
        runner.read { machine, _ in machine.advertisementFlaws[registrant] }
    }

    /// Registrants whose advertisements are watched.
    public var contacts: [PublicKey] { runner.read { machine, _ in machine.directory.watched } }

    /// Removes all state about a registrant.
    public func forget(_ registrant: PublicKey) {
        turn { $0.forget(registrant, at: $1) }
        let topic = ClientNetwork.contactCodeTopic(registrant)
        _ = routes.withLock { $0.contactCodes.removeValue(forKey: topic) }
        network.watching.drop([topic])
    }

    /// Records that a message came from this device: the most recently active devices are notified first.
    public func noteActivity(of installationID: InstallationID, of registrant: PublicKey) {
        turn { $0.noteActivity(of: installationID, of: registrant, at: $1) }
    }

    // MARK: Sending

    /// Requests notifications for devices, each from one server, falling back to another server when one does not acknowledge it. An access token
    /// stands for all devices of a record, so a server may notify more devices than were chosen.
    ///
    /// A message id notifies a device once per server, however often this is called within 24 h. Cancelling the task stops sending for the message.
    ///
    /// - Parameter message: Its kind is ignored: version 0.1 has none.
    /// - Returns: The outcome for each device, after ten minutes at the latest.
    /// - Throws: ``PushClientError`` with `notEnabled` or `invalid`
    public func notify(_ message: OutgoingNotification) async throws(PushClientError) -> [DeviceOutcome] {
        guard isSending else {
            throw PushClientError(code: .notEnabled, message: "sending is switched off: switch it on with setSending(true)")
        }
        guard (1...OutgoingNotification.messageIDByteLimit).contains(message.messageID.count) else { throw .unusableMessageID }
        guard message.content.count + V01.KeyHash.byteCount <= V01.Request.contentByteLimit else {
            throw PushClientError(code: .invalid, message: "the message is longer than a notification can be")
        }
        turn { $0.notify(message, at: $1) }
        let id = message.messageID
        let outcomes = await withTaskCancellationHandler {
            await runner.wait(nil) { machine -> [DeviceOutcome]? in
                guard let record = machine.notifications.messages[id] else { return [] }
                return record.isFinished ? record.outcomes : nil
            }
        } onCancel: {
            turn { $0.cancel(id, at: $1) }
        }
        return outcomes ?? runner.read { machine, _ in machine.notifications.messages[id]?.outcomes ?? [] }
    }
}

extension V01Machine {
    /// Whether each of these servers gave a final answer.
    fileprivate func isSettled(_ servers: [PublicKey]) -> Bool {
        servers.allSatisfy { registrations.servers[$0]?.attempt == nil }
    }
}
