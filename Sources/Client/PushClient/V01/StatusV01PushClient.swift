import Core
public import StatusProtocol
import Synchronization
public import Waku
public import WakuCrypto

/// A client of push servers of version 0.1: keeps the account's record registered, advertises its devices, discovers others' devices, and has them
/// notified.
///
/// One client is one account with any number of servers, which all get the same record. It believes no answer that the server did not sign, and no
/// advertisement that the registrant did not sign. Nothing is registered before receiving is switched on, nobody is notified before sending is: ``setReceiving(_:)``, ``setSending(_:)``.
///
/// While ``run()`` does not run, nothing is sent and no answer comes. Its store may be that of a ``StatusPushClient`` of the same identity, one
/// at a time.
public final class StatusV01PushClient: Sendable {
    let identity: PrivateKey
    let network: ClientNetwork
    let runner: MachineRunner<V01Machine>
    let routes = Mutex(Routes())

    /// Who waits for messages on which topics.
    struct Routes: Sendable {
        enum Question: Sendable {
            /// The key that the answers are for.
            case query(QueryTable.Ticket, PrivateKey)
            case request(NotificationMachine.Ticket, V01.AckKey)
        }

        var tickets = AnswerTickets<Question>()
        /// Contact code topics that are listened to.
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

    /// A client that goes on where it was when its process ended, however that was.
    ///
    /// - Parameters:
    ///   - identity: Whose client it is.
    ///   - relays: One or more ways onto the network.
    ///   - store: What it remembers.
    ///   - configuration: At least three devices of a registrant are notified when a message does not name them; bundles are not used.
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

    /// The account.
    public var publicKey: PublicKey { identity.publicKey }

    /// Names this device.
    public var installationID: InstallationID { runner.read { machine, _ in machine.own.installationID } }

    /// Stays attached until cancelled: what is to be registered, advertised and sent goes out, answers come in.
    ///
    /// Cancelling leaves everything as a kill would: what was on its way goes on when this is called again, or at the next start of the process.
    /// While another call runs, this one waits for the end of that.
    public func run() async {
        // Answers to what was sent before may still come.
        let isAwaiting = runner.read { machine, _ in machine.registrations.servers.values.contains { $0.attempt != nil } }
        if isAwaiting { network.watching.keep([StatusPushClient.answerTopic(identity.publicKey)]) }
        await runner.run(network.relay, deliver: { [self] in take($0) }, perform: { [self] in begin($0, in: &$1) })
    }

    /// Events from now on. A consumer that does not keep up misses the oldest of more than a thousand.
    public var events: AsyncStream<PushClientEvent> { runner.events }

    func turn(_ body: (inout V01Machine, Timestamp) -> V01Output) {
        runner.turn { (body(&$0, $1), ()) }
    }

    // MARK: Opting in

    public var isReceiving: Bool { runner.read { machine, _ in machine.own.isReceiving } }
    public var isSending: Bool { runner.read { machine, _ in machine.own.isSending } }

    /// Lets the client register its device. Switched off, it removes the device from all servers, and keeps trying until they answered.
    public func setReceiving(_ isReceiving: Bool) {
        turn { $0.setReceiving(isReceiving, at: $1) }
    }

    /// Lets the client have others' devices notified. Switched off, nothing more is sent for messages that are under way.
    public func setSending(_ isSending: Bool) {
        turn { $0.setSending(isSending, at: $1) }
    }

    // MARK: Receiving

    /// Registers the device with these servers, and no others: as a part of the account's record, which is the same at each. Nothing is sent when
    /// nothing changed. Servers that don't answer within the time are tried on while the client runs, at this and at every later start.
    ///
    /// - Parameters:
    ///   - profile: The device and its user's wishes.
    ///   - servers: All of them; at least one.
    ///   - enablesReceiving: Whether to switch receiving on as ``setReceiving(_:)`` does. When it is off, that call alone would first register what
    ///     was registered last.
    ///   - timeout: How long to wait for the servers.
    /// - Returns: The state at each of these servers, when all answered or the time is over.
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

    /// Removes the device from the account's record at all servers; without another device in it, that ends the account's registration. Servers that
    /// don't answer within the time are tried on.
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

    /// The servers that the device was registered with last, or is to be: also after it was unregistered, but not those that are being left.
    package var wantedServers: [PublicKey] { runner.read { machine, _ in machine.own.servers } }

    /// When a server that did not answer, or could not, is tried again: after so long. nil when nothing waits for time to pass.
    public func nextTry(at server: PublicKey) -> Duration? {
        runner.read { machine, now in
            guard case .paused(let until) = machine.registrations.servers[server]?.attempt?.state else { return nil }
            return max(until.time.since(now), .zero)
        }
    }

    /// Waits until what changed was stored.
    package func waitUntilStored(timeout: Duration) async {
        _ = await runner.wait(timeout) { _ in true }
    }

    /// Waits until the advertisement that is being published is out, or failed.
    package func waitUntilAdvertised(timeout: Duration) async {
        _ = await runner.wait(timeout) { $0.advertising.isUnderWay ? nil : true }
    }

    // MARK: Others

    /// Watches a registrant's advertisements from now on, looks the latest up in the relay's store, and queries servers if that tells of no access
    /// token.
    ///
    /// - Parameters:
    ///   - registrant: Whose devices.
    ///   - servers: Servers to query in any case, besides those that are known.
    ///   - timeout: How long to wait for servers.
    /// - Returns: The devices known by then; version 0.1 has no version for each of them.
    @discardableResult
    public func discover(_ registrant: PublicKey, askingAlso servers: [PublicKey] = [], timeout: Duration = .seconds(10)) async
        -> [KnownDevice]
    {
        turn { $0.discover(registrant, at: $1) }
        if network.relay is any StoreReadingRelay {
            _ = await runner.wait(timeout / 2) { $0.directory.registrants[registrant]?.wasLookedUp == true ? true : nil }
        }
        turn { $0.refresh(registrant, also: servers, at: $1) }
        _ = await runner.wait(timeout / 2) { $0.queries.isUnderWay(about: registrant) ? nil : true }
        return devices(of: registrant)
    }

    /// What is known of a registrant's devices.
    public func devices(of registrant: PublicKey) -> [KnownDevice] {
        runner.read { machine, _ in machine.directory.rows(of: registrant) }.map { row in
            KnownDevice(installationID: row.installationID, server: row.server, version: 0, isTokenKnown: row.accessToken != nil)
        }
    }

    /// Why the registrant's latest advertisement of this run was not believed, or only in part; nil when it was, or none came.
    public func advertisementFlaw(of registrant: PublicKey) -> AdvertisementFlaw? {
        runner.read { machine, _ in machine.advertisementFlaws[registrant] }
    }

    /// Registrants whose advertisements are watched.
    public var contacts: [PublicKey] { runner.read { machine, _ in machine.directory.watched } }

    /// Forgets what is known of a registrant.
    public func forget(_ registrant: PublicKey) {
        turn { $0.forget(registrant, at: $1) }
        let topic = ClientNetwork.contactCodeTopic(registrant)
        _ = routes.withLock { $0.contactCodes.removeValue(forKey: topic) }
        network.watching.drop([topic])
    }

    /// A message came from this device: the devices that were active last are notified first.
    public func noteActivity(of installationID: InstallationID, of registrant: PublicKey) {
        turn { $0.noteActivity(of: installationID, of: registrant, at: $1) }
    }

    // MARK: Sending

    /// Has devices notified, each by one server, by another where that one does not acknowledge it. An access token stands for all devices of a
    /// record: a server may notify more devices than were chosen.
    ///
    /// The same message id notifies a device once at a server, however often this is called within 24 h. When the task is cancelled nothing more is
    /// sent for the message.
    ///
    /// - Parameter message: Its kind is not a part of version 0.1.
    /// - Returns: What became of each device, once that is known: after ten minutes at the latest.
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
    /// Whether each of these servers answered for good.
    fileprivate func isSettled(_ servers: [PublicKey]) -> Bool {
        servers.allSatisfy { registrations.servers[$0]?.attempt == nil }
    }
}
