import Dispatch
import NodeMetrics
import Core
import StatusProtocol
import Storage
import Synchronization
import Waku
import WakuCrypto

/// The symmetric keys of query topics: derived when a message first needs them, and stored.
///
/// A derivation takes about 12 ms. Derivations run one at a time on a separate queue, and once per topic, because the key is stored: a flood of
/// invalid messages on a topic costs a single derivation.
final class TopicKeys: Sendable {
    /// Maximum number of tags whose keys are in memory; the least recently used are evicted first.
    private static let capacity = 100_000

    private struct State {
        var keys = GenerationalCache<TopicTag, [SymmetricKey]>(capacity: TopicKeys.capacity / 2)
        var loading: [TopicTag: Loading] = [:]
    }

    private struct Loading {
        var waiting: [CheckedContinuation<Result<[SymmetricKey], StoreError>, Never>] = []
        /// Whether the keys being read are outdated.
        var isStale = false
    }

    private let state = Mutex(State())
    private let store: any Store
    private let storage: TopicKeyStorage
    private let counters: Counters
    private let lookUps = DispatchQueue(label: "waku-push.topic-keys")
    private let derivations = DispatchQueue(label: "waku-push.topic-key-derivation", qos: .utility)

    init(store: any Store, counters: Counters) {
        self.store = store
        storage = TopicKeyStorage(store.sealer)
        self.counters = counters
    }

    /// The keys of a tag's topics, if all are in memory.
    func known(_ tag: TopicTag) -> [SymmetricKey]? {
        state.withLock { $0.keys.refreshedValue(of: tag) }
    }

    /// The keys of a tag's topics, from memory, from the store or derived.
    func keys(_ tag: TopicTag) async throws(StoreError) -> [SymmetricKey] {
        let result = await withCheckedContinuation { continuation in
            let (known, isFirst) = state.withLock { state -> ([SymmetricKey]?, Bool) in
                if let keys = state.keys.refreshedValue(of: tag) { return (keys, false) }
                let isFirst = state.loading[tag] == nil
                state.loading[tag, default: Loading()].waiting.append(continuation)
                return (nil, isFirst)
            }
            if let known { continuation.resume(returning: .success(known)) }
            if isFirst { lookUps.async { self.load(tag) } }
        }
        return try result.get()
    }

    /// Forgets keys in memory because the registrants of these topics may have changed.
    func forget(_ topics: QueryTopics) {
        state.withLock { state in
            for tag in [topics.deployed, topics.published] {
                state.keys.remove(tag)
                state.loading[tag]?.isStale = true
            }
        }
    }

    /// Forgets all keys in memory.
    func forgetAll() {
        state.withLock { state in
            state.keys.removeAll()
            for tag in state.loading.keys { state.loading[tag]?.isStale = true }
        }
    }

    // MARK: Loading

    /// Loads the topic strings of a tag with their stored keys, and derives missing keys.
    private func load(_ tag: TopicTag) {
        state.withLock { $0.loading[tag]?.isStale = false }
        let topics: [(String, SymmetricKey?)]
        do throws(StoreError) {
            topics = try store.read(
                TopicKeyStorage.queryTopics(withTag: tag).then { [storage] strings in
                    StoreCommand.each(strings.map(storage.key)).map { Array(zip(strings, $0)) }
                })
        } catch {
            return end(tag, .failure(error))
        }
        if topics.allSatisfy({ $0.1 != nil }) { return end(tag, .success(topics.compactMap(\.1))) }
        derivations.async {
            let keys = topics.map { $0.1 ?? self.derive($0.0) }
            self.end(tag, .success(keys))
        }
    }

    private func derive(_ topicString: String) -> SymmetricKey {
        let key = KeyDerivation.topicKey(topicString)
        counters.add(.topicKeyDerived)
        store.enqueue(.change([storage.keep(key, of: topicString)]))
        return key
    }

    private func end(_ tag: TopicTag, _ result: Result<[SymmetricKey], StoreError>) {
        let waiting = state.withLock { state -> [CheckedContinuation<Result<[SymmetricKey], StoreError>, Never>]? in
            guard let loading = state.loading[tag], !loading.isStale else { return nil }
            state.loading[tag] = nil
            if case .success(let keys) = result { state.keys.set(keys, of: tag) }
            return loading.waiting
        }
        guard let waiting else { return lookUps.async { self.load(tag) } }
        for continuation in waiting { continuation.resume(returning: result) }
    }
}
