import Delivery
import Foundation
import Logging
import NodeAssembly
import PushNode
import StatusServer
import Storage
import StoreSQLite
import Synchronization
import ServiceLifecycle
import StatusProtocol
import Core
import Waku
import WakuCrypto

/// A node with a data folder, fed by a ``BenchRelay``.
struct BenchNode: Sendable {
    let relay: BenchRelay
    let server: Server

    /// Without reply delay and without deriving keys ahead, so that only the work for messages is measured.
    static func configuration(_ identity: PrivateKey, _ folder: String) -> ServerConfiguration {
        var configuration = ServerConfiguration(identity: identity, dataPath: folder)
        configuration.replyDelay = .zero
        configuration.deriveAheadLimit = nil
        return configuration
    }

    /// Runs a node while `body` runs, and shuts it down gracefully.
    static func running<R: Sendable>(
        _ configuration: ServerConfiguration, gorush: any NotificationPosting, _ body: @escaping @Sendable (BenchNode) async throws -> R
    ) async throws -> R {
        let relay = BenchRelay()
        return try await withServer(configuration, gorush: gorush, makeRelay: { _ in relay }) {
            try await body(BenchNode(relay: relay, server: $0))
        }
    }

    /// Runs a node with any relay.
    static func withServer<R: Sendable>(
        _ configuration: ServerConfiguration, gorush: any NotificationPosting, makeRelay: (RelayNeeds) throws -> any Relay,
        _ body: @escaping @Sendable (Server) async throws -> R
    ) async throws -> R {
        let server = try Server(configuration, gorush: gorush, logger: .quiet, makeRelay: makeRelay)
        let services = ServiceGroup(services: [server.node], logger: .quiet)
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

    /// Rows are spread over the indexes, so that a commit changes many pages, however few its rows are.
    private static let seedChunk = 100_000
    private static let seedCacheMebibytes = 256

    /// Stores registrations directly in a database, many in a transaction. During a commit those of the next are made.
    ///
    /// - Parameters:
    ///   - clients: registered with version 1.
    ///   - count: the number of other registrations, with random keys.
    ///   - progress: called with the part that is stored.
    /// - Returns: the size of the registrations' own data in bytes.
    @discardableResult static func seed(
        _ clients: [BenchClient], strangers count: Int = 0, identity: PrivateKey, folder: String, at location: StoreLocation = .dataFolder,
        progress: (Double) -> Void = { _ in }, change: @escaping @Sendable (inout PushNotificationRegistration) -> Void = { _ in }
    ) async throws -> Int {
        let total = clients.count + max(0, count)
        guard total > 0 else { return 0 }
        let store = try NodeAssembly.store(at: location, in: folder, of: identity)
        try (store as? SQLiteStore)?.setCache(mebibytes: seedCacheMebibytes)
        let server = identity.publicKey
        let registrations = Registrations(store.sealer)
        var byteCount = 0
        var underWay: Task<[Result<Bool, StoreError>], Never>?
        for start in stride(from: 0, to: total, by: seedChunk) where !Task.isCancelled {
            progress(Double(start) / Double(total))
            let cores = ProcessInfo.processInfo.activeProcessorCount
            let records = await makeInParallel(min(seedChunk, total - start), cores: cores) { offset in
                guard start + offset < clients.count else { return BenchClient.strangersRecord() }
                let client = clients[start + offset]
                var registration = client.registration(version: 1, server: server)
                change(&registration)
                // As stored by a message, so that its grant counts as proved.
                return RegistrationRecord(
                    key: client.key, version: registration.version, changedAt: .now(), registration: registration.encoded(),
                    message: MessageMark(rawValue: 0))
            }
            byteCount += records.reduce(0) { sum, record in
                sum + (record.registration?.count ?? 0) + record.key.keyHash.bytes.count + record.key.installationID.bytes.count
            }
            for result in await underWay?.value ?? [] { _ = try result.get() }
            underWay = Task { await store.commitEach(records.map(registrations.merge)) }
        }
        for result in await underWay?.value ?? [] { _ = try result.get() }
        try store.close()
        try Task.checkCancellation()
        return byteCount
    }
}

/// Accepts every notification after a delay, like a gorush with that latency, and counts them.
final class PostingStandIn: NotificationPosting {
    var certificateEnd: Int? { nil }
    private let latency: Duration
    private let state = Mutex((count: 0, last: UInt64(0)))

    init(latency: Duration) { self.latency = latency }

    var count: Int { state.withLock { $0.count } }
    /// The time of the last notification.
    var lastTime: UInt64 { state.withLock { $0.last } }

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        if latency > .zero { try? await Task.sleep(for: latency) }
        let now = Clock.uptime()
        state.withLock { $0 = ($0.count + notifications.count, now) }
        return PostResult(outcome: .accepted, postedTokenCount: notifications.count, countedTokenCount: notifications.count)
    }
}

extension Logger {
    /// Discards everything, so that logging is not measured.
    static var quiet: Logger { Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() } }
}
