import Dispatch
import PushStore
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// The symmetric keys of query topics, derived when a message first needs them and kept.
///
/// A derivation takes 11 ms. It runs beside the pipeline, one at a time, once for a topic: a flood of junk on one topic costs one.
final class TopicKeys: Sendable {
    private static let capacity = 200_000

    private struct State {
        /// Keys by topic string, in two generations: the older one goes when the younger is full.
        var young: [String: SymmetricKey] = [:]
        var old: [String: SymmetricKey] = [:]
        /// The topic strings behind a tag, as the store has them.
        var strings: [TopicTag: [String]] = [:]
        /// Tags whose strings are being read from the store, by how many; what they find is out of date once the generation changed.
        var reading: [TopicTag: Int] = [:]
        var generation = 0
        /// Who waits for a key that is being derived.
        var waiting: [String: [CheckedContinuation<SymmetricKey, Never>]] = [:]

        mutating func key(_ string: String) -> SymmetricKey? {
            if let key = young[string] { return key }
            guard let key = old[string] else { return nil }
            keep(key, string)
            return key
        }

        mutating func keep(_ key: SymmetricKey, _ string: String) {
            if young.count >= TopicKeys.capacity / 2 { (old, young) = (young, [:]) }
            young[string] = key
        }
    }

    private let state = Mutex(State())
    private let store: Store
    private let counters: Counters
    private let queue = DispatchQueue(label: "waku-push.topic-keys", qos: .utility)

    init(store: Store, counters: Counters) {
        self.store = store
        self.counters = counters
    }

    /// The keys of a tag's topics, when all are at hand.
    func known(_ tag: TopicTag) -> [SymmetricKey]? {
        state.withLock { state in
            guard let strings = state.strings[tag] else { return nil }
            let keys = strings.compactMap { state.key($0) }
            return keys.count == strings.count ? keys : nil
        }
    }

    /// The keys of a tag's topics, derived if need be.
    ///
    /// - Throws: ``StoreError``
    func keys(_ tag: TopicTag) async throws(StoreError) -> [SymmetricKey] {
        var keys: [SymmetricKey] = []
        for string in try strings(tag) { keys.append(await key(string)) }
        return keys
    }

    /// Whoever was registered on it may have changed.
    func forget(_ topics: QueryTopics) {
        state.withLock { state in
            for tag in [topics.deployed, topics.published] {
                state.strings[tag] = nil
                if state.reading[tag] != nil { state.generation += 1 }
            }
        }
    }

    private func strings(_ tag: TopicTag) throws(StoreError) -> [String] {
        let (known, generation) = state.withLock { state in
            if state.strings[tag] == nil { state.reading[tag, default: 0] += 1 }
            return (state.strings[tag], state.generation)
        }
        if let known { return known }
        let found: Result<[String], StoreError>
        do throws(StoreError) {
            found = .success(try store.read { try $0.queryTopics(withTag: tag) })
        } catch {
            found = .failure(error)
        }
        state.withLock { state in
            let others = (state.reading[tag] ?? 1) - 1
            state.reading[tag] = others > 0 ? others : nil
            guard state.generation == generation, case .success(let strings) = found else { return }
            if state.strings.count >= Self.capacity { state.strings = [:] }
            state.strings[tag] = strings
        }
        return try found.get()
    }

    private func key(_ string: String) async -> SymmetricKey {
        await withCheckedContinuation { continuation in
            let (known, mustDerive) = state.withLock { state -> (SymmetricKey?, Bool) in
                if let key = state.key(string) { return (key, false) }
                state.waiting[string, default: []].append(continuation)
                return (nil, state.waiting[string]?.count == 1)
            }
            if let known { continuation.resume(returning: known) }
            if mustDerive { queue.async { self.derive(string) } }
        }
    }

    private func derive(_ string: String) {
        let key = KeyDerivation.topicKey(string)
        counters.add(.topicKeyDerived)
        let waiting = state.withLock { state in
            state.keep(key, string)
            return state.waiting.removeValue(forKey: string) ?? []
        }
        for continuation in waiting { continuation.resume(returning: key) }
    }
}
