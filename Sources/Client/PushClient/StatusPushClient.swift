public import StatusProtocol
import Synchronization
import Core
public import Waku
public import WakuCrypto

/// A client of push servers: keeps a device registered, advertises it, discovers others' devices, and has them notified.
///
/// One client is one identity with any number of servers. It believes no answer that the server did not sign, and no grant that the
/// registrant did not sign. Nothing is registered before receiving is switched on, nobody is notified before sending is: ``setReceiving(_:)``, ``setSending(_:)``.
///
/// While ``run()`` does not run, nothing is sent and no answer comes.
public final class StatusPushClient: Sendable {
    public struct Configuration: Sendable {
        public var pubsubTopic = PubsubTopic.statusDefault
        /// How many devices of a registrant are notified when a message does not name them; at most 5.
        public var deviceLimit = 3
        /// Key bundles of the secure transport, encoded, to go with advertisements.
        public var bundles: [[UInt8]] = []

        public init() {}
    }

    let identity: PrivateKey
    let network: ClientNetwork
    let bundles: [[UInt8]]
    /// One-shot questions.
    let waiting = Mutex(WaitingAsks())
    let runner: MachineRunner<ClientMachine>
    let routes = Mutex(Routes())

    /// Who waits for messages on which topics.
    struct Routes: Sendable {
        struct Question: Sendable {
            enum Kind: Sendable {
                /// The id of its envelope.
                case query(QueryTable.Ticket, messageID: [UInt8])
                case request(NotificationMachine.Ticket)
            }

            /// The key that the answer is for.
            let key: PrivateKey
            let kind: Kind
        }

        var tickets = AnswerTickets<Question>()
        /// Contact code topics that are listened to.
        var contactCodes: [ContentTopic: PublicKey] = [:]
    }

    /// A client that remembers nothing after its process ended. `identity` is who registers, and to whose key lists of allowed keys are
    /// sealed. Queries and requests do not show it.
    public convenience init(identity: PrivateKey, relay: any Relay, pubsubTopic: PubsubTopic = .statusDefault) {
        var configuration = Configuration()
        configuration.pubsubTopic = pubsubTopic
        self.init(identity: identity, relay: relay, store: MemoryClientStore(), records: [], configuration)
    }

    private init(identity: PrivateKey, relay: any Relay, store: any ClientStore, records: [ClientRecord], _ configuration: Configuration) {
        self.identity = identity
        network = ClientNetwork(relay: relay, pubsubTopic: configuration.pubsubTopic)
        bundles = configuration.bundles
        var kept: Timestamp?
        for case .own(let record) in records { kept = record.time }
        let clock = SteadyClock(kept: kept, clock: .now(), uptime: SteadyClock.uptime)
        let cryptography = IdentityCryptography(identity: identity)
        var machine = ClientMachine(
            records: records, installationID: InstallationID(bytes: cryptography.makeAccessToken().bytes), cryptography: cryptography,
            at: clock.time(at: SteadyClock.uptime))
        machine.setDeviceLimit(configuration.deviceLimit)
        runner = MachineRunner(machine, clock: clock, store: store)
    }

    /// A client that goes on where it was when its process ended, however that was.
    ///
    /// - Parameters:
    ///   - identity: Whose client it is.
    ///   - relays: One or more ways onto the network.
    ///   - store: What it remembers. Of this client alone.
    ///   - configuration: The rest.
    /// - Throws: ``ClientStoreError``
    public static func open(
        identity: PrivateKey, relays: [any Relay], store: any ClientStore, configuration: Configuration = Configuration()
    ) async throws(ClientStoreError) -> StatusPushClient {
        var records: [ClientRecord] = []
        for (name, value) in try await store.load().sorted(by: { $0.key < $1.key }) where !V01Record.isName(name) {
            records.append(try RecordCoding.decode(name, value))
        }
        let relay = relays.count == 1 ? relays[0] : RelaySet(relays)
        return StatusPushClient(identity: identity, relay: relay, store: store, records: records, configuration)
    }

    /// A client in anonymous mode: an identity of its own, which nothing that it publishes links to `identity`. It is derived from that one's
    /// private key, so that it is the same after each start; nobody else can derive it.
    ///
    /// Contacts are told ``publicKey`` by the application. They notify it, and watch its contact code topic, instead of the first one's.
    ///
    /// - Parameters:
    ///   - identity: The first identity. It signs nothing here.
    ///   - relays: One or more ways onto the network.
    ///   - store: Of the anonymous client alone.
    ///   - configuration: The rest. Bundles name the identity that made them: those of the first one don't belong here.
    /// - Throws: ``ClientStoreError``
    public static func anonymous(
        for identity: PrivateKey, relays: [any Relay], store: any ClientStore, configuration: Configuration = Configuration()
    ) async throws(ClientStoreError) -> StatusPushClient {
        try await open(identity: anonymousIdentity(for: identity), relays: relays, store: store, configuration: configuration)
    }

    /// The identity of ``anonymous(for:relays:store:configuration:)``: SHA-256(purpose ‖ private key ‖ counter), the first that is a key.
    public static func anonymousIdentity(for identity: PrivateKey) -> PrivateKey {
        let secret = identity.withBytes { Array($0) }
        for counter in UInt8.min ... .max {
            let digest = SHA256.hash(Array("waku-push anonymous identity 1".utf8), secret, [counter])
            if let key = try? PrivateKey(bytes: digest) { return key }
        }
        // Each of the 256 fails once in 2^128 times.
        return .generate()
    }

    /// Who registers: what contacts must know of an anonymous client.
    public var publicKey: PublicKey { identity.publicKey }

    /// Names this device.
    public var installationID: InstallationID { runner.read { machine, _ in machine.own.installationID } }
}
