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
    ///   - relays: One or more connections to the network.
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
