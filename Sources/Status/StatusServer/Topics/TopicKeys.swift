import Dispatch
import Foundation
import NodeMetrics
import Core
import RateLimits
import StatusProtocol
import Storage
import Synchronization
import Waku
import WakuCrypto

/// The symmetric keys of query topics: derived when a message first needs them, and stored.
///
/// A derivation is the most costly work (``WorkKind/deriveTopicKey``). Derivations run on half of the cores, and once per topic, because the key is stored: a flood of invalid messages on
/// a topic costs a single derivation. Known registrants have their share of the turns; among strangers the newest has the next turn, so that under a
/// flood of registrants some are answered in time, instead of all of them too late.
final class TopicKeys: Sendable {
    /// Maximum number of tags whose keys are in memory; the least recently used are evicted first.
    private static let capacity = 100_000
    private static let workerCount = max(1, ProcessInfo.processInfo.activeProcessorCount / 2)

    private struct State {
        var keys = GenerationalCache<TopicTag, [SymmetricKey]>(capacity: TopicKeys.capacity / 2)
        var loading: [TopicTag: Loading] = [:]
    }

    private struct Loading {
        var waiting: [CheckedContinuation<Result<[SymmetricKey]?, StoreError>, Never>] = []
        /// Whether the keys being read are outdated.
        var isStale = false
    }

    private struct Topic: Sendable {
        let string: String
        let registrant: KeyHash
        /// nil if none is stored.
        let key: SymmetricKey?
    }

    /// A derivation that waits for its turn.
    private struct Derivation: Sendable {
        let tag: TopicTag
        let topics: [Topic]
        let charge: Charge
    }

    private struct Derivations {
        var waiting: FairQueue<Derivation>
        var workers = 0
    }

    private let state = Mutex(State())
    private let derivations: Mutex<Derivations>
    private let store: any Store
    private let storage: TopicKeyStorage
    private let counters: Counters
    private let lookUps = DispatchQueue(label: "waku-push.topic-keys")
    private let workers = DispatchQueue(label: "waku-push.topic-key-derivation", qos: .utility, attributes: .concurrent)
    private let charge: @Sendable (TopicTag) -> Charge
    private let displaced: @Sendable (Charge) -> Void

    /// - Parameters:
    ///   - charge: the payer of a topic's derivation.
    ///   - displaced: called for each derivation that was displaced by others.
    ///   - waitingLimit: the maximum number of waiting derivations.
    init(
        store: any Store, counters: Counters, charge: @escaping @Sendable (TopicTag) -> Charge,
        displaced: @escaping @Sendable (Charge) -> Void, waitingLimit: Int = 2_000
    ) {
        derivations = Mutex(Derivations(waiting: FairQueue(capacity: waitingLimit, newPayersFirst: true)))
        self.charge = charge
        self.displaced = displaced
        self.store = store
        storage = TopicKeyStorage(store.sealer)
        self.counters = counters
    }

    /// The keys of a tag's topics, if all are in memory.
    func known(_ tag: TopicTag) -> [SymmetricKey]? {
        state.withLock { $0.keys.refreshedValue(of: tag) }
    }

    /// The keys of a tag's topics, from memory, from the store or derived; nil if the derivation was displaced.
    ///
    /// - Throws: ``StoreError``
    func keys(_ tag: TopicTag) async throws(StoreError) -> [SymmetricKey]? {
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
        let topics: [Topic]
        do throws(StoreError) {
            topics = try store.read(
                TopicKeyStorage.queryTopics(withTag: tag).then { [storage] found in
                    StoreCommand.each(found.map { storage.key(of: $0.topic) }).map { keys in
                        zip(found, keys).map { Topic(string: $0.topic, registrant: $0.registrant, key: $1) }
                    }
                })
        } catch {
            return end(tag, .failure(error))
        }
        if topics.allSatisfy({ $0.key != nil }) { return end(tag, .success(topics.compactMap(\.key))) }
        let charge = charge(tag)
        let (lost, isNewWorker) = derivations.withLock { derivations in
            let lost = derivations.waiting.push(Derivation(tag: tag, topics: topics, charge: charge), by: charge.payer, charge.standing)
            let isNewWorker = derivations.workers < Self.workerCount && !derivations.waiting.isEmpty
            if isNewWorker { derivations.workers += 1 }
            return (lost, isNewWorker)
        }
        for derivation in lost {
            displaced(derivation.charge)
            end(derivation.tag, .success(nil))
        }
        if isNewWorker { workers.async { self.work() } }
    }

    /// Derives until no derivation waits.
    private func work() {
        while true {
            let next = derivations.withLock { derivations -> Derivation? in
                let next = derivations.waiting.pop()
                if next == nil { derivations.workers -= 1 }
                return next
            }
            guard let next else { return }
            end(next.tag, .success(next.topics.map { $0.key ?? derive($0) }))
        }
    }

    private func derive(_ topic: Topic) -> SymmetricKey {
        let key = KeyDerivation.topicKey(topic.string)
        counters.add(.topicKeyDerived)
        store.enqueue(storage.keep(key, of: topic.string, ifRegistered: topic.registrant))
        return key
    }

    private func end(_ tag: TopicTag, _ result: Result<[SymmetricKey]?, StoreError>) {
        let waiting = state.withLock { state -> [CheckedContinuation<Result<[SymmetricKey]?, StoreError>, Never>]? in
            guard let loading = state.loading[tag], !loading.isStale else { return nil }
            state.loading[tag] = nil
            if case .success(let keys?) = result { state.keys.set(keys, of: tag) }
            return loading.waiting
        }
        guard let waiting else { return lookUps.async { self.load(tag) } }
        for continuation in waiting { continuation.resume(returning: result) }
    }
}
