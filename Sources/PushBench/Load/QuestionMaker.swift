import PushTypes
import StatusProtocol
import WakuCrypto

/// Generates distinct messages of one kind in advance.
struct QuestionMaker: Sendable {
    let kind: MessageBench.Kind
    let server: PublicKey
    let clients: [BenchClient]
    private let topicKeys: [SymmetricKey]
    private let cores: Int

    /// - Parameter deviceToken: makes the token of the client with this number.
    init(
        _ kind: MessageBench.Kind, identity: PrivateKey, cores: Int,
        deviceToken: @escaping @Sendable (Int) -> DeviceToken = { _ in DeviceToken(hexString(randomBytes(32))) }
    ) async {
        self.kind = kind
        self.cores = cores
        server = identity.publicKey
        let clients = await makeInParallel(kind.seedCount, cores: cores) { BenchClient(deviceToken: deviceToken($0)) }
        self.clients = clients
        topicKeys =
            kind == .query
            ? await makeInParallel(clients.count, cores: cores) { KeyDerivation.topicKey(StatusTopics.query(clients[$0].keyHash)) } : []
    }

    /// - Parameters:
    ///   - count: how many to make.
    ///   - start: how many were made before.
    func make(_ count: Int, after start: Int) async -> [Question] {
        await makeInParallel(count, cores: cores) { question(start + $0) }
    }

    func question(_ number: Int) -> Question {
        guard kind != .registration else {
            return BenchClient(deviceToken: DeviceToken(hexString(randomBytes(32)))).registering(version: 1, server: server)
        }
        let index = number % clients.count
        switch kind {
        case .registration, .update: return clients[index].registering(version: UInt64(number / clients.count) + 2, server: server)
        case .stale: return clients[index].registering(version: 1, server: server)
        case .query: return clients[index].asking(topicKey: topicKeys[index])
        case .request: return clients[index].notifying(server: server)
        }
    }
}
