import Core
public import StatusProtocol
public import Waku
public import WakuCrypto

/// A client of push servers of version 0.1, with the members of ``StatusPushClient``.
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
    let runner: MachineRunner<Version01>
    let routes: AnswerRoutes<Question>

    enum Question: Sendable {
        /// The key that the answers are encrypted to.
        case query(QueryTable.Ticket, PrivateKey)
        case request(NotificationMachine.Ticket, V01.AckKey)
    }

    private init(
        identity: PrivateKey, relay: any Relay, store: any ClientStore, records: [V01Record],
        _ configuration: StatusPushClient.Configuration
    ) {
        self.identity = identity
        network = ClientNetwork(relay: relay, pubsubTopic: configuration.pubsubTopic)
        routes = AnswerRoutes(relay)
        runner = MachineRunner(records, in: store) { now in
            var machine = V01Machine(
                records: records, installationID: InstallationID(bytes: AccessToken.random().bytes), identity: identity, at: now)
            machine.notifications.deviceLimit = max(configuration.deviceLimit, NotificationMachine.defaultDeviceLimit)
            machine.contactServers = configuration.servers
            return machine
        }
    }

    /// Opens a client that continues from its stored state, even after its process was killed.
    ///
    /// - Parameters:
    ///   - relays: One or more connections to the network, of this client only.
    ///   - store: The client's state.
    ///   - configuration: The device limit is raised to at least three; servers are queried about registrants who advertise none; bundles are not
    ///     used.
    public static func open(
        identity: PrivateKey, relays: [any Relay], store: any ClientStore,
        configuration: StatusPushClient.Configuration = StatusPushClient.Configuration()
    ) async throws(ClientStoreError) -> StatusV01PushClient {
        let records = try await V01Record.load(from: store)
        let relay = relays.count == 1 ? relays[0] : RelaySet(relays)
        return StatusV01PushClient(identity: identity, relay: relay, store: store, records: records, configuration)
    }

    /// The account's public key.
    public var publicKey: PublicKey { identity.publicKey }

    /// The id of this device's installation.
    public var installationID: InstallationID { runner.read { machine, _ in machine.own.installationID } }

    /// Runs until cancelled, as ``StatusPushClient/run()``.
    public func run() async { await runMachine() }

    /// Events from now on, through all runs. Beyond a thousand unread events, the oldest are dropped. The sequence ends when the client is released.
    public var events: AsyncStream<PushClientEvent> { runner.events }

    // MARK: Opting in

    /// Whether the client keeps its device registered: false in a new client, and stored.
    public var isReceiving: Bool { runner.read { machine, _ in machine.own.isReceiving } }
    /// Whether the client may request notifications: false in a new client, and stored.
    public var isSending: Bool { runner.read { machine, _ in machine.own.isSending } }

    /// Allows the client to register its device. When disabled, the client removes the device from all servers and retries until they answer.
    public func setReceiving(_ isReceiving: Bool) {
        turn { machine, _ in machine.setReceiving(isReceiving) }
    }

    /// Allows the client to request notifications. When disabled, nothing more is sent for pending messages.
    public func setSending(_ isSending: Bool) {
        turn { machine, _ in machine.setSending(isSending) }
    }

    // MARK: Receiving

    /// Registers the device with exactly these servers, as part of the account's record, which is the same at each. Other servers are left once one
    /// of these has accepted it. Sends nothing when nothing changed. Servers that don't answer within the timeout are retried while the client runs, also after a restart.
    ///
    /// - Parameters:
    ///   - profile: The device and its user's settings.
    ///   - servers: The complete list; at least one.
    ///   - enablesReceiving: Whether to enable receiving, as ``StatusPushClient/register(_:with:enablesReceiving:again:timeout:)`` does.
    ///   - again: Whether to send the record also when nothing changed, as for a server that lost or refused it, or to end a pause.
    ///   - timeout: How long to wait for the servers.
    /// - Returns: The state at each of these servers, once all answered or the timeout passed.
    /// - Throws: ``PushClientError`` with `notEnabled`, `invalid`, `notRunning` or `cancelled`, with which the registration goes on
    @discardableResult
    public func register(
        _ profile: V01DeviceProfile, with servers: [PublicKey], enablesReceiving: Bool = false, again: Bool = false,
        timeout: Duration = .seconds(30)
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        guard !profile.deviceToken.isEmpty else {
            throw PushClientError(code: .invalid, message: "the device can't be registered: the device token is empty")
        }
        return try await register(with: servers, enablesReceiving: enablesReceiving, timeout: timeout) {
            $0.registrations.register(profile, with: servers, again: again)
        }
    }

    /// Removes the device from the account's record at all servers; if it was the only device, that ends the account's registration. Servers that
    /// don't answer within the timeout are retried. Does not wait for a server of an earlier `register` that never accepted the device: it may be a
    /// mistake.
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

    /// The time until a server that did not answer, or failed, is retried; nil when no retry is scheduled.
    public func nextTry(at server: PublicKey) -> Duration? {
        runner.read { machine, now in machine.registrations.servers[server]?.pausedUntil.map { max($0.since(now), .zero) } }
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

    // MARK: Others

    /// Watches a registrant's advertisements from now on, looks up the latest one in the relay's store, and queries servers if it contains no access
    /// token.
    ///
    /// - Parameters:
    ///   - servers: Servers to query in any case, besides the known ones.
    ///   - timeout: How long to wait for the look-up and for servers.
    /// - Returns: The devices known by then. Version 0.1 has no version per device.
    /// - Throws: ``PushClientError`` with `notRunning`, `cancelled`, or `noServerKnown` as soon as there is nothing left to ask, also when the registrant
    ///   unregistered all devices, which version 0.1 has no answer for
    @discardableResult
    public func discover(
        _ registrant: PublicKey, askingAlso servers: [PublicKey] = [], timeout: Duration = .seconds(10)
    ) async throws(PushClientError) -> [KnownDevice] {
        try await findDevices(of: registrant, askingAlso: servers, timeout: timeout)
    }

    /// Waits until a store or a server answered about the registrant in this run. Returns false if none did before the timeout, or none can any more.
    package func hasAnswer(about registrant: PublicKey, timeout: Duration) async -> Bool {
        await waitForAnswer(about: registrant, timeout: timeout)
    }

    /// The known devices of a registrant.
    public func devices(of registrant: PublicKey) -> [KnownDevice] { knownDevices(of: registrant) }

    /// The outcome of a notification when ``discover`` found no device: the registrant unregistered all. Empty if none was known before either.
    package func outcomes(withoutDevicesOf registrant: PublicKey) -> [DeviceOutcome] { outcomesWithoutDevices(of: registrant) }

    /// Why the registrant's latest advertisement of this run was rejected, wholly or in part; nil when it was accepted, or none arrived.
    public func advertisementFlaw(of registrant: PublicKey) -> AdvertisementFlaw? {
        runner.read { machine, _ in machine.advertisementFlaws[registrant] }
    }

    /// Registrants whose advertisements are watched.
    public var contacts: [PublicKey] { runner.read { machine, _ in machine.directory.watched } }

    /// Removes all state about a registrant, as ``StatusPushClient/forget(_:)``.
    public func forget(_ registrant: PublicKey) {
        turn { machine, _ in machine.forget(registrant) }
    }

    /// Records that a message came from this device, as ``StatusPushClient/noteActivity(of:of:)``.
    public func noteActivity(of installationID: InstallationID, of registrant: PublicKey) {
        turn { $0.directory.noteActivity(of: installationID, of: registrant, at: $1) }
    }

    // MARK: Sending

    /// Requests notifications for devices, each from one server, falling back to another server when one does not acknowledge it. An access token
    /// stands for all devices of a record, so a server may notify more devices than were chosen.
    ///
    /// A message id notifies a device once per server, however often this is called within 24 h. Cancelling the task stops sending for the message.
    ///
    /// - Parameter message: Its kind is ignored: version 0.1 has none.
    /// - Returns: The outcome for each device, after ten minutes at the latest if the store can be written; so far, when the task was cancelled.
    /// - Throws: ``PushClientError`` with `notEnabled`, `invalid`, `cancelled` before it began, or `notRunning`, also when ``run()`` ended: the next
    ///   one goes on with the message.
    public func notify(_ message: OutgoingNotification) async throws(PushClientError) -> [DeviceOutcome] {
        try await notify(
            message, contentByteLimit: V01.Request.contentByteLimit - V01.KeyHash.byteCount, chat: V01.chatHash(message.chatID), author: [])
    }
}
