import StatusProtocol
package import Storage
import WakuCrypto

/// Derives the keys of query topics before a daemon needs them, on all cores.
package enum TopicKeyDerivation {
    private static let pageLimit = 256

    /// Derives the missing keys of all registrants, for the deployed form of the topic.
    ///
    /// - Parameters:
    ///   - store: keys are stored page by page, so that an interrupted run can be continued.
    ///   - progress: called with the number of keys derived so far.
    /// - Returns: the number of derived keys.
    package static func deriveAll(in store: any Store, progress: (Int) -> Void) async throws(StoreError) -> Int {
        let storage = TopicKeyStorage(store.sealer)
        var (count, next): (Int, Int64?) = (0, .max)
        while let before = next {
            let page = try store.read(TopicKeyStorage.registrantsWithoutKey(before: before, limit: pageLimit))
            next = page.next
            let keys = await derive(page.registrants.map(StatusTopics.query))
            try await store.commit(StoreCommand.change(keys.map { storage.keep($0.key, of: $0.topic) }))
            count += keys.count
            progress(count)
        }
        return count
    }

    private static func derive(_ topics: [String]) async -> [(topic: String, key: SymmetricKey)] {
        await withTaskGroup(of: (topic: String, key: SymmetricKey).self) { group in
            for topic in topics { group.addTask { (topic, KeyDerivation.topicKey(topic)) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }
}
