import Core
import Delivery
import NodeAssembly
import RateLimits
import StatusProtocol
import StatusServer
import Storage
import WakuCrypto

/// Measures the price of each kind of work beside ``WorkKind/cpuMicroseconds``, the table in code. Run it after a change of the work, and correct the table where it
/// is off by more than a factor of two.
struct CostBench: Sendable {
    private static let rowCount = 5_000

    let settings: BenchSettings

    func run() async throws -> [BenchResult] {
        let messages: [(kind: MessageBench.Kind, work: [WorkKind])] = [
            // A registration of an old version is opened and refused: nothing is stored.
            (.stale, [.openMessage]), (.registration, [.openMessage, .registration]), (.query, [.openMessage, .query, .answer]),
            (.request, [.openMessage, .request, .notification]),
        ]
        var results: [BenchResult] = []
        for (kind, work) in messages { results.append(Self.result(work, cpuMicroseconds: try await cpu(of: kind))) }
        results.append(try await deriving())
        results += try await session()
        for (work, byteCount) in try await storedBytes() {
            guard let index = results.firstIndex(where: { $0.name.contains(work.rawValue) }) else { continue }
            results[index].details["storedBytes"] = Double(byteCount)
            results[index].note = (results[index].note ?? "") + "; stored \(byteCount) bytes"
        }
        return results
    }

    // MARK: CPU time

    private func cpu(of kind: MessageBench.Kind) async throws -> Double {
        var settings = settings
        settings.latencyCount = 32
        let results = try await MessageBench(kind: kind, settings: settings).run()
        return results.first?.cpuMicroseconds ?? .nan
    }

    /// The node's own derivation, not that of OpenSSL, which is five times as expensive.
    private func deriving() async throws -> BenchResult {
        let run = try await CoreRun.measure(cores: 1, for: .seconds(max(settings.seconds / 8, 0.1))) {
            CoreOperation {
                _ = KeyDerivation.topicKey("a topic")
                return 1
            }
        }
        return Self.result([.deriveTopicKey], cpuMicroseconds: run.cpuMicroseconds)
    }

    /// Empty without libsodium.
    private func session() async throws -> [BenchResult] {
        guard let results = try? await SessionBench(settings: settings).measureRequests() else { return [] }
        let works: [(name: String, work: [WorkKind])] = [
            ("session subscribe", [.checkSignature, .subscription]),
            ("session subscribe, onion", [.checkSignature, .subscription, .onionRequest]),
            ("session notify", [.storageMessage, .notification]),
        ]
        return works.compactMap { name, work in
            let found = results.first { $0.name == name }
            return found?.cpuMicroseconds.map { Self.result(work, cpuMicroseconds: $0) }
        }
    }

    // MARK: Bytes

    /// The growth of a database by a row of each kind.
    private func storedBytes() async throws -> [(WorkKind, Int)] {
        let identity = PrivateKey.generate()
        let clients = await makeInParallel(Self.rowCount, cores: settings.cores) { _ in BenchClient(deviceToken: DeviceToken("device")) }
        return try await settings.withFolder { folder in
            let store = try NodeAssembly.store(in: folder, of: identity)
            defer { try? store.close() }
            func growth(_ commands: [StoreCommand<Void>]) async throws -> Int {
                await store.maintain()
                let before = store.byteCount
                for result in await store.commitEach(commands) { _ = try result.get() }
                await store.maintain()
                return max(0, store.byteCount - before) / commands.count
            }
            let registrations = Registrations(store.sealer)
            let registered = try await growth(
                clients.map { client in
                    let registration = client.registration(version: 1, server: identity.publicKey)
                    let record = RegistrationRecord(
                        key: client.key, version: 1, changedAt: .now(), registration: registration.encoded())
                    return registrations.merge(record).map { _ in }
                })
            let notified = try await growth(
                clients.indices.map { index in
                    .change([
                        DeliveryStorage.enqueue(
                            DeliveryID(messageID: randomBytes(32), key: clients[index].key),
                            for: DeviceID(ProtocolNumber(rawValue: 1), row: Int64(index + 1)),
                            payload: randomBytes(350), expires: .now(), markedAt: nil, by: store.sealer)
                    ])
                })
            return [(.registration, registered), (.notification, notified)]
        }
    }

    // MARK: Results

    private static func result(_ work: [WorkKind], cpuMicroseconds: Double) -> BenchResult {
        let table = work.reduce(0) { $0 + $1.cpuMicroseconds }
        var result = BenchResult(name: "cost: " + work.map(\.rawValue).joined(separator: " + "))
        result.cpuMicroseconds = cpuMicroseconds
        result.details["cpuMicrosecondsInTable"] = Double(table)
        result.note = "\(table) µs in the table, \((Double(table) / cpuMicroseconds * 100).rounded() / 100) of the measured"
        return result
    }
}
