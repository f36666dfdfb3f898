import Core
import StatusProtocol
import WakuCrypto

/// Generates distinct messages of one kind in advance.
struct QuestionMaker: Sendable {
    let kind: MessageBench.Kind
    let server: PublicKey
    let clients: [BenchClient]
    /// The order in which the clients take turns: random, so that consecutive messages read different pages.
    private let order: [Int]
    private let topicKeys: [SymmetricKey]
    private let cores: Int

    /// - Parameters:
    ///   - stored: the number of registrations that are stored in advance, which limits that of the clients.
    ///   - deviceToken: makes the token of the client with this number.
    init(
        _ kind: MessageBench.Kind, identity: PrivateKey, cores: Int, stored: Int = 2_000,
        deviceToken: @escaping @Sendable (Int) -> DeviceToken = { _ in DeviceToken(hexString(randomBytes(32))) }
    ) async {
        self.kind = kind
        self.cores = cores
        server = identity.publicKey
        let clients = await makeInParallel(kind.clientCount(stored: stored), cores: cores) { BenchClient(deviceToken: deviceToken($0)) }
        self.clients = clients
        order = clients.indices.shuffled()
        topicKeys =
            kind == .query
            ? await makeInParallel(clients.count, cores: cores) { KeyDerivation.topicKey(StatusTopics.query(clients[$0].keyHash)) } : []
    }

    /// - Parameter start: the number of messages made before.
    func make(_ count: Int, after start: Int) async -> [Question] {
        await makeInParallel(count, cores: cores) { question(start + $0) }
    }

    /// The number of the client that a message is from or about.
    func client(of number: Int) -> Int { order[number % order.count] }

    func question(_ number: Int) -> Question {
        let client =
            kind.isOfStrangers ? BenchClient(deviceToken: DeviceToken(hexString(randomBytes(32)))) : clients[self.client(of: number)]
        return switch kind {
        case .registration, .stale: client.registering(version: 1, server: server)
        case .update: client.registering(version: UInt64(number / clients.count) + 2, server: server)
        case .query: client.asking(topicKey: topicKeys[self.client(of: number)])
        case .request: client.notifying(server: server)
        case .v01Register: client.v01Registering(server: server)
        case .v01Query: client.v01Asking(server: server)
        case .v01Request: client.v01Notifying(server: server)
        }
    }

    /// Registers all clients with version 0.1.
    ///
    /// - Throws: ``BenchError`` when the node does not answer all of them.
    func registerAll(at relay: BenchRelay, batch: Int) async throws {
        let questions = await makeInParallel(clients.count, cores: cores) { clients[$0].v01Registering(server: server) }
        let speed = try await FullSpeed.measure(questions, relay: relay, batch: batch)
        guard speed.unanswered == 0 else {
            throw BenchError(code: .unanswered, message: "\(speed.unanswered) of \(speed.count) registrations went unanswered")
        }
    }
}
