public import StatusProtocol
import Core
public import Waku
public import WakuCrypto

/// A client of push servers: keeps a device registered, advertises it, discovers the devices of contacts, and requests notifications for them.
///
/// One client has one identity and any number of servers. It accepts only answers signed by the server and grants signed by the registrant.
/// It registers nothing before receiving is enabled, and notifies no device before sending is enabled: ``setReceiving(_:)``, ``setSending(_:)``.
///
/// Messages are sent and received only while ``run()`` runs.
public final class StatusPushClient: Sendable {
    /// Settings that the store does not keep: pass the same ones each time the client is opened.
    public struct Configuration: Sendable {
        /// The topic that the client publishes and subscribes on: that of its servers and contacts.
        public var pubsubTopic = PubsubTopic.statusDefault
        /// The number of a registrant's devices to notify when a message names none; at most 5.
        public var deviceLimit = 3
        /// Servers to query about the devices of others, besides those that advertisements name and those that this client is registered with.
        /// A client that only sends needs them where the network stores no advertisements.
        public var servers: [PushServer] = []
        /// Encoded key bundles of the secure transport, included in advertisements.
        public var bundles: [[UInt8]] = []

        /// The settings of Status' network: three devices, no bundles.
        public init() {}
    }

    let identity: PrivateKey
    let network: ClientNetwork
    let bundles: [[UInt8]]
    let runner: MachineRunner<DeployedVersion>
    let routes: AnswerRoutes<Question>

    /// A pending query, request or one-shot request, with the key that its answers are encrypted to.
    enum Question: Sendable {
        /// `messageID`: the id of the query's envelope.
        case query(QueryTable.Ticket, PrivateKey, messageID: [UInt8])
        case request(NotificationMachine.Ticket, PrivateKey)
        case ask(Ask)

        var key: PrivateKey {
            switch self {
            case .query(_, let key, _), .request(_, let key): key
            case .ask(let ask): ask.recipient
            }
        }
    }

    /// Creates a client that keeps its state in memory only. Registrations belong to `identity`, and lists of allowed keys are sealed to its key;
    /// queries and requests do not reveal it.
    public convenience init(identity: PrivateKey, relay: any Relay, pubsubTopic: PubsubTopic = .statusDefault) {
        var configuration = Configuration()
        configuration.pubsubTopic = pubsubTopic
        self.init(identity: identity, relay: relay, store: MemoryClientStore(), records: [], configuration)
    }

    private init(identity: PrivateKey, relay: any Relay, store: any ClientStore, records: [ClientRecord], _ configuration: Configuration) {
        self.identity = identity
        network = ClientNetwork(relay: relay, pubsubTopic: configuration.pubsubTopic)
        routes = AnswerRoutes(relay)
        bundles = configuration.bundles
        runner = MachineRunner(records, in: store) { now in
            var machine = ClientMachine(
                records: records, installationID: InstallationID(bytes: AccessToken.random().bytes),
                cryptography: IdentityCryptography(identity: identity), at: now)
            machine.notifications.deviceLimit = configuration.deviceLimit
            machine.contactServers = configuration.servers
            return machine
        }
    }

    /// Opens a client that continues from its stored state, even after its process was killed.
    ///
    /// - Parameters:
    ///   - relays: One or more connections to the network, of this client only: the ``run()`` of another client over the same relay sends, but receives
    ///     nothing until this one's has ended.
    ///   - store: The client's state. No other client may use the same store.
    public static func open(
        identity: PrivateKey, relays: [any Relay], store: any ClientStore, configuration: Configuration = Configuration()
    ) async throws(ClientStoreError) -> StatusPushClient {
        let records = try await ClientRecord.load(from: store)
        let relay = relays.count == 1 ? relays[0] : RelaySet(relays)
        return StatusPushClient(identity: identity, relay: relay, store: store, records: records, configuration)
    }

    /// Opens a client in anonymous mode. Its identity is derived from the private key of `identity`, so that it is the same after each start;
    /// without that private key it can't be derived, and no published message links the two identities.
    ///
    /// The application gives ``publicKey`` to contacts, which notify it and watch its contact code topic instead of those of `identity`.
    ///
    /// - Parameters:
    ///   - identity: The identity to derive from. It signs nothing here.
    ///   - relays: Those of this client only, as for ``open(identity:relays:store:configuration:)``.
    ///   - store: The state of the anonymous client only.
    ///   - configuration: Further settings. Bundles name the identity that made them, so do not pass bundles of `identity`.
    public static func anonymous(
        for identity: PrivateKey, relays: [any Relay], store: any ClientStore, configuration: Configuration = Configuration()
    ) async throws(ClientStoreError) -> StatusPushClient {
        try await open(identity: anonymousIdentity(for: identity), relays: relays, store: store, configuration: configuration)
    }

    /// The identity of ``anonymous(for:relays:store:configuration:)``: the first SHA-256(purpose ‖ private key ‖ counter) that is a valid key.
    public static func anonymousIdentity(for identity: PrivateKey) -> PrivateKey {
        let secret = identity.withBytes { Array($0) }
        for counter in UInt8.min ... .max {
            let digest = SHA256.hash(Array("waku-push anonymous identity 1".utf8), secret, [counter])
            if let key = try? PrivateKey(bytes: digest) { return key }
        }
        // Each of the 256 attempts fails with a probability of 2^-128.
        return .generate()
    }

    /// The key that registrations belong to. Contacts of an anonymous client need it.
    public var publicKey: PublicKey { identity.publicKey }

    /// The id of this device's installation.
    public var installationID: InstallationID { runner.read { machine, _ in machine.own.installationID } }
}

extension StatusPushClient {
    /// Runs until cancelled: registers, advertises, sends requests, and receives answers.
    ///
    /// After a cancellation, as after a kill, unfinished work resumes with the next call or the next start of the process.
    /// If another call is running, waits for it to end first.
    public func run() async { await runMachine() }

    /// Events from now on, through all runs. Beyond a thousand unread events, the oldest are dropped. The sequence ends when the client is released.
    public var events: AsyncStream<PushClientEvent> { runner.events }

    // MARK: Opting in

    /// Whether the client keeps its device registered: false in a new client, and stored.
    public var isReceiving: Bool { runner.read { machine, _ in machine.own.isReceiving } }
    /// Whether the client may request notifications: false in a new client, and stored.
    public var isSending: Bool { runner.read { machine, _ in machine.own.isSending } }

    /// Allows the client to register its device. When disabled, the client unregisters from all servers and retries until they answer.
    public func setReceiving(_ isReceiving: Bool) {
        turn { machine, _ in machine.setReceiving(isReceiving) }
    }

    /// Allows the client to request notifications. When disabled, nothing more is sent for pending messages.
    public func setSending(_ isSending: Bool) {
        turn { machine, _ in machine.setSending(isSending) }
    }

    // MARK: Receiving

    /// Registers the device with exactly these servers. Other servers are left once one of these has accepted the device. Sends nothing when nothing
    /// changed. Servers that don't answer within the timeout are
    /// retried while the client runs, also after a restart.
    ///
    /// - Parameters:
    ///   - profile: The device and its user's settings.
    ///   - servers: The complete list; at least one. For a Web Push subscription, each with its ``PushServer/vapidKey``, which is
    ///     added to the subscription.
    ///   - enablesReceiving: Whether to enable receiving as ``setReceiving(_:)`` does. Calling ``setReceiving(_:)`` first would register the
    ///     previous profile before this one.
    ///   - again: Whether to send the registration also when nothing changed, as for a server that lost or refused it, or to end a pause.
    ///   - timeout: How long to wait for the servers.
    /// - Returns: The state at each server, once all answered or the timeout passed.
    /// - Throws: ``PushClientError`` with `notEnabled`, `invalid`, `notRunning` or `cancelled`, with which the registration goes on
    @discardableResult
    public func register(
        _ profile: DeviceProfile, with servers: [PushServer], enablesReceiving: Bool = false, again: Bool = false,
        timeout: Duration = .seconds(30)
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        guard profile.platform != .webPush || servers.allSatisfy({ $0.vapidKey != nil }) else { throw .notForWebPush }
        if let flaw = profile.flaw { throw PushClientError(code: .invalid, message: "the device can't be registered: \(flaw)") }
        if profile.platform == .webPush { for case let key? in servers.map(\.vapidKey) { _ = try profile.deviceToken.naming(key) } }
        return try await register(with: servers.map(\.key), enablesReceiving: enablesReceiving, timeout: timeout) {
            $0.register(profile, with: servers, again: again)
        }
    }

    /// Ends the registrations with all servers. Servers that don't answer within the timeout are retried. Does not wait for a server
    /// of an earlier `register` that never accepted the device: it may be a mistake.
    ///
    /// - Returns: The state at each server.
    /// - Throws: ``PushClientError`` with `notRunning`, and nothing is changed: ``setReceiving(_:)`` works without ``run()``. With `cancelled`, it goes on.
    @discardableResult
    public func unregister(timeout: Duration = .seconds(30)) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        try await endRegistrations(timeout: timeout)
    }

    /// The state at each server, also at those that are being left: all but ``wantedServers``. They are retried until they answer: one may have the
    /// device, and its answer may be lost.
    public var registrations: [PublicKey: RegistrationStatus] { states }

    /// The servers of the last `register`, also after the device was unregistered, without servers that are being left.
    public var wantedServers: [PublicKey] { runner.read { machine, _ in machine.own.serverKeys } }
    /// The same, with their VAPID keys.
    package var namedServers: [PushServer] { runner.read { machine, _ in machine.own.servers } }

    /// The time until a server that did not answer, or failed, is retried; nil when no retry is scheduled.
    public func nextTry(at server: PublicKey) -> Duration? {
        runner.read { machine, now in machine.registrations.servers[server]?.pausedUntil.map { max($0.since(now), .zero) } }
    }

    /// Sets an encoded ChatIdentity to include in advertisements; empty for none.
    public func setChatIdentity(_ chatIdentity: [UInt8]) {
        turn { machine, _ in machine.registrations.setChatIdentity(chatIdentity) }
    }

    /// Waits until all changes were stored. Returns false if they were not before the timeout.
    @discardableResult
    package func waitUntilStored(timeout: Duration) async -> Bool {
        await runner.wait(timeout) { _, _ in true } ?? false
    }

    /// Waits until all servers answered, also those that are being left.
    package func waitUntilSettled(timeout: Duration) async {
        _ = await runner.wait(timeout) { machine, _ in machine.isSettled(Array(machine.registrations.servers.keys)) ? true : nil }
    }

    /// Waits until the current advertisement was published or failed.
    package func waitUntilAdvertised(timeout: Duration) async {
        _ = await runner.wait(timeout) { machine, _ in machine.advertising.isUnderWay ? nil : true }
    }

    // MARK: Other registrants

    /// Replaces ``Configuration/servers``: the servers to query about others, besides those that advertisements name and those that this
    /// client is registered with. The store does not keep them: call it, or set ``Configuration/servers``, each time the client is opened.
    public func setQueryServers(_ servers: [PushServer]) {
        turn { machine, _ in machine.contactServers = servers }
    }

    /// Watches a registrant's advertisements from now on, looks up the latest one in the relay's store, and at the same time queries the known
    /// servers if no device is known, or one that is not in the latest advertisement may be registered. While ``run()`` runs, an advertisement is looked
    /// up once, and again after a suspension or ten minutes without a connection: other calls return known devices at once.
    ///
    /// - Parameter timeout: How long to wait for the look-up and for servers.
    /// - Returns: The devices known by then, without those that a later advertisement or their server took back. If nothing answered, they are those of
    ///   earlier runs.
    /// - Throws: ``PushClientError`` with `notRunning`, `cancelled`, or `noServerKnown` as soon as there is nothing left to ask
    @discardableResult
    public func discover(_ registrant: PublicKey, timeout: Duration = .seconds(10)) async throws(PushClientError) -> [KnownDevice] {
        try await findDevices(of: registrant, timeout: timeout)
    }

    /// Waits until a store or a server answered about the registrant in this run. Returns false if none did before the timeout, or none can any more.
    package func hasAnswer(about registrant: PublicKey, timeout: Duration) async -> Bool {
        await waitForAnswer(about: registrant, timeout: timeout)
    }

    /// The known devices of a registrant.
    public func devices(of registrant: PublicKey) -> [KnownDevice] { knownDevices(of: registrant) }

    /// The outcome of a notification when ``discover`` found no device: the registrant unregistered all. Empty if none was known before either.
    package func outcomes(withoutDevicesOf registrant: PublicKey) -> [DeviceOutcome] { outcomesWithoutDevices(of: registrant) }

    /// Why the registrant's latest advertisement of this run was rejected, wholly or from some row on; nil when it was accepted, or none arrived.
    public func advertisementFlaw(of registrant: PublicKey) -> AdvertisementFlaw? {
        runner.read { machine, _ in machine.advertisementFlaws[registrant] }
    }

    /// Registrants whose advertisements are watched.
    public var contacts: [PublicKey] { runner.read { machine, _ in machine.directory.watched } }

    /// Removes all state about a registrant. Notifications of its devices that are under way are cancelled, but not those
    /// in requests that are for others, too.
    public func forget(_ registrant: PublicKey) {
        turn { machine, _ in machine.forget(registrant) }
    }

    /// Records that a message came from this device: the most recently active devices are notified first. Has no effect for registrants who were
    /// neither discovered nor notified.
    public func noteActivity(of installationID: InstallationID, of registrant: PublicKey) {
        turn { $0.directory.noteActivity(of: installationID, of: registrant, at: $1) }
    }

    // MARK: Sending

    /// Requests notifications for devices, each from one server, falling back to another server when one does not answer.
    ///
    /// A message id notifies a device once, however often this is called within 24 h. Cancelling the task stops sending for the message,
    /// also for other calls with its id.
    ///
    /// - Returns: The outcome for each device, after ten minutes at the latest if the store can be written; so far, when the task was cancelled.
    /// - Throws: ``PushClientError`` with `notEnabled`, `invalid`, `cancelled` before it began, or `notRunning`, also when ``run()`` ended: the next
    ///   one goes on with the message.
    public func notify(_ message: OutgoingNotification) async throws(PushClientError) -> [DeviceOutcome] {
        try await notify(
            message, contentByteLimit: PushNotification.contentByteLimit - KeyHash.byteCount, chat: StatusHashes.chat(message.chatID),
            author: StatusHashes.author(identity.publicKey))
    }
}
