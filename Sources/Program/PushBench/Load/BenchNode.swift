import Delivery
import Logging
import NodeAssembly
import PushNode
import StatusServer
import Storage
import ServiceLifecycle
import StatusProtocol
import Core
import Waku
import WakuCrypto

/// A node with a data folder, fed by a ``BenchRelay``.
struct BenchNode: Sendable {
    let relay = BenchRelay()
    let identity: PrivateKey

    /// Runs a node while `body` runs, and shuts it down gracefully.
    static func running<R: Sendable>(
        identity: PrivateKey, folder: String, gorush: any NotificationPosting, _ body: @escaping @Sendable (BenchNode) async throws -> R
    ) async throws -> R {
        try await running(configuration(identity, folder), gorush: gorush, body)
    }

    /// Without reply delay and without deriving keys ahead, so that only the work for messages is measured.
    static func configuration(_ identity: PrivateKey, _ folder: String) -> ServerConfiguration {
        var configuration = ServerConfiguration(identity: identity, dataPath: folder)
        configuration.replyDelay = .zero
        configuration.deriveAheadLimit = nil
        return configuration
    }

    static func running<R: Sendable>(
        _ configuration: ServerConfiguration, gorush: any NotificationPosting, _ body: @escaping @Sendable (BenchNode) async throws -> R
    ) async throws -> R {
        let bench = BenchNode(identity: configuration.identity)
        return try await withNode(configuration, gorush: gorush, makeRelay: { _ in bench.relay }) { _ in try await body(bench) }
    }

    /// Runs a node with any relay.
    static func withNode<R: Sendable>(
        _ configuration: ServerConfiguration, gorush: any NotificationPosting, makeRelay: (RelayNeeds) throws -> any Relay,
        _ body: @escaping @Sendable (NodeService) async throws -> R
    ) async throws -> R {
        try await withServer(configuration, gorush: gorush, makeRelay: makeRelay) { try await body($0.node) }
    }

    /// Like `withNode`, for benchmarks that access the protocols.
    static func withServer<R: Sendable>(
        _ configuration: ServerConfiguration, gorush: any NotificationPosting, makeRelay: (RelayNeeds) throws -> any Relay,
        _ body: @escaping @Sendable (Server) async throws -> R
    ) async throws -> R {
        let quiet = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
        let server = try Server(configuration, gorush: gorush, logger: quiet, makeRelay: makeRelay)
        let services = ServiceGroup(services: [server.node], logger: quiet)
        return try await withThrowingTaskGroup(of: R?.self) { group in
            group.addTask {
                try await services.run()
                return nil
            }
            group.addTask {
                let result: Result<R, any Error>
                do { result = .success(try await body(server)) } catch { result = .failure(error) }
                await services.triggerGracefulShutdown()
                return try result.get()
            }
            var result: R?
            while let next = try await group.next() { result = next ?? result }
            guard let result else { throw CancellationError() }
            return result
        }
    }

    /// Stores registrations directly in a database, many in a transaction.
    static func seed(
        _ clients: [BenchClient], identity: PrivateKey, folder: String, at location: StoreLocation = .dataFolder,
        _ change: (inout PushNotificationRegistration) -> Void = { _ in }
    ) async throws {
        let store = try NodeAssembly.store(at: location, in: folder, of: identity)
        let server = identity.publicKey
        for start in stride(from: 0, to: clients.count, by: 5_000) {
            let part = clients[start..<min(start + 5_000, clients.count)]
            let records = part.map { client in
                var registration = client.registration(version: 1, server: server)
                change(&registration)
                return RegistrationRecord(
                    key: client.key, version: registration.version, changedAt: .now(), registration: registration.encoded())
            }
            for result in await store.commitEach(records.map(Registrations(store.sealer).merge)) { _ = try result.get() }
        }
        try store.close()
    }
}

/// Accepts every notification after a delay, like a gorush with that latency.
struct PostingStandIn: NotificationPosting {
    let latency: Duration

    func post(_ notifications: [Notification]) async -> PostResult {
        if latency > .zero { try? await Task.sleep(for: latency) }
        return PostResult(outcome: .accepted, postedTokenCount: notifications.count, countedTokenCount: notifications.count)
    }
}
