import Logging
import NodeMetrics
import Core
import StatusProtocol
import Storage
import Synchronization
import WakuCrypto

/// Derives the keys of query topics ahead of the first query, on idle cores.
///
/// A derivation takes about 7 ms of CPU time. Only the deployed form of the topic string is derived, because clients use it. A key that a
/// query needs earlier is derived by ``TopicKeys`` at once.
final class TopicKeyPrecomputation: Sendable {
    /// Number of rows per scan step.
    private static let scanLimit = 4_096
    /// Delay after a store failure.
    private static let pause = Duration.seconds(5)

    private let store: any Store
    private let storage: TopicKeyStorage
    private let counters: Counters
    private let logger: Logger
    private let backlog: Mutex<TopicKeyBacklog>
    let limit: Int
    private let isIdle: Bool
    private let wakeUp = WakeUpSignal()

    /// - Parameters:
    ///   - limit: maximum number of waiting registrants. Further ones are read from the store later.
    ///   - isIdle: whether to use idle cores only.
    init(store: any Store, counters: Counters, limit: Int, isIdle: Bool, logger: Logger) {
        self.isIdle = isIdle
        self.store = store
        storage = TopicKeyStorage(store.sealer)
        self.counters = counters
        self.limit = limit
        self.logger = logger
        backlog = Mutex(TopicKeyBacklog(limit: limit))
        wakeUp.signal()
    }

    /// Number of waiting registrants.
    var count: Int { backlog.withLock { $0.count } }

    /// Adds a registrant whose registration was just answered.
    func add(_ registrant: KeyHash) {
        backlog.withLock { $0.add(registrant) }
        wakeUp.signal()
    }

    /// Runs until cancelled.
    func run() async {
        for await _ in wakeUp {
            while !Task.isCancelled, let action = backlog.withLock({ $0.next() }) {
                do throws(StoreError) {
                    switch action {
                    case .derive(let registrants): try await derive(registrants)
                    case .scan(let before): try await scan(before: before)
                    }
                } catch {
                    logger.warning("failed to derive topic keys ahead", metadata: ["reason": "\(error.message)"])
                    try? await Task.sleep(for: Self.pause)
                }
            }
        }
    }

    private func scan(before: Int64?) async throws(StoreError) {
        var found: (registrants: [KeyHash], next: Int64?) = ([], nil)
        // A failure ends the scan; it starts again when the node starts.
        defer { backlog.withLock { $0.scanned(found.registrants, next: found.next) } }
        found = try await store.fetch(TopicKeyStorage.registrantsWithoutKey(before: before, limit: min(Self.scanLimit, limit)))
    }

    private func derive(_ registrants: [KeyHash]) async throws(StoreError) {
        let known = try await store.fetch(StoreCommand.each(registrants.map { storage.key(of: StatusTopics.query($0)) }))
        let missing = zip(registrants, known).filter { $1 == nil }.map(\.0)
        var keys: [(registrant: KeyHash, key: SymmetricKey)] = []
        for await key in IdleThread.map(missing, isIdle: isIdle, { KeyDerivation.topicKey(StatusTopics.query($0)) }) {
            keys.append((missing[keys.count], key))
        }
        guard !keys.isEmpty else { return }
        let count = keys.count
        // Not awaited, so that the next keys are derived concurrently.
        store.submit(
            [StoreCommand.all(keys.map { storage.keep($0.key, of: StatusTopics.query($0.registrant), ifRegistered: $0.registrant) })]
        ) { [counters] _ in counters.add(.topicKeyDerivedAhead, count) }
    }
}
