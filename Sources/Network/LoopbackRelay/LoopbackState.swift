package import Core
package import Waku

/// The state of the loopback node: subscriptions, the cache for pollers, and the store's archive. Time comes in as a value.
///
/// All topics share one cache, as in nwaku: when it is full, the message with the smallest timestamp is evicted. A poll removes the messages
/// that it returns. The archive refuses the messages that a store refuses, and evicts its oldest.
package struct LoopbackState {
    struct Limits: Hashable, Sendable {
        var cacheCapacity: Int
        var archiveCount = 10_000
        /// The total size of payloads and topics in the store.
        var archiveByteCount = 64 << 20
        /// Stores refuse messages whose timestamp differs from their clock by more than this.
        var archiveClockTolerance = Duration.seconds(20)
    }

    private struct Cached {
        let message: ReceivedMessage
        /// Counts arrivals: polls return messages in this order.
        let number: UInt64
    }

    private let limits: Limits
    private var subscriptions: Set<PubsubTopic> = []
    private var cache: [MessageHash: Cached] = [:]
    private var arrivalCount: UInt64 = 0
    /// By timestamp, then by hash.
    private var archive: [ReceivedMessage] = []
    private var archived: Set<MessageHash> = []
    private var archiveByteCount = 0

    init(limits: Limits) {
        self.limits = limits
    }

    package mutating func subscribe(to topics: [PubsubTopic]) {
        subscriptions.formUnion(topics)
    }

    package mutating func unsubscribe(from topics: [PubsubTopic]) {
        subscriptions.subtract(topics)
    }

    package func isSubscribed(to topic: PubsubTopic) -> Bool {
        subscriptions.contains(topic)
    }

    /// Simulates a restart: removes subscriptions and cache, keeps the archive.
    mutating func restart() {
        subscriptions = []
        cache = [:]
    }

    mutating func arrive(_ message: ReceivedMessage, at now: Timestamp) {
        keep(message, at: now)
        guard subscriptions.contains(message.pubsubTopic), cache[message.hash] == nil else { return }
        if cache.count >= limits.cacheCapacity,
            let oldest = cache.min(by: { $0.value.message.message.timestamp < $1.value.message.message.timestamp })
        {
            cache[oldest.key] = nil
        }
        arrivalCount += 1
        cache[message.hash] = Cached(message: message, number: arrivalCount)
    }

    /// Removes and returns the cached messages of a topic; nil when the topic is not subscribed.
    package mutating func poll(_ topic: PubsubTopic) -> [ReceivedMessage]? {
        guard subscriptions.contains(topic) else { return nil }
        let due = cache.values.filter { $0.message.pubsubTopic == topic }.sorted { $0.number < $1.number }
        for cached in due {
            cache[cached.message.hash] = nil
        }
        return due.map(\.message)
    }

    // MARK: Store

    private mutating func keep(_ message: ReceivedMessage, at now: Timestamp) {
        let offset = message.message.timestamp.since(now)
        guard !message.message.ephemeral, offset <= limits.archiveClockTolerance, offset >= .zero - limits.archiveClockTolerance,
            archived.insert(message.hash).inserted
        else { return }
        archive.insert(message, at: position(after: message))
        archiveByteCount += Self.byteCount(message)
        var excess = 0
        while archive.count - excess > limits.archiveCount || archiveByteCount > limits.archiveByteCount, excess < archive.count {
            archiveByteCount -= Self.byteCount(archive[excess])
            archived.remove(archive[excess].hash)
            excess += 1
        }
        archive.removeFirst(excess)
    }

    private static func byteCount(_ message: ReceivedMessage) -> Int {
        message.message.payload.count + message.message.contentTopic.rawValue.utf8.count
    }

    private static func precedes(_ left: ReceivedMessage, _ right: ReceivedMessage) -> Bool {
        if left.message.timestamp != right.message.timestamp { return left.message.timestamp < right.message.timestamp }
        return left.hash.bytes.lexicographicallyPrecedes(right.hash.bytes)
    }

    /// The index for a new message by binary search: nearly always the end.
    private func position(after message: ReceivedMessage) -> Int {
        var low = 0
        var high = archive.count
        while low < high {
            let middle = (low + high) / 2
            if Self.precedes(archive[middle], message) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// One page of the archive, and the cursor for the next page if there is one.
    package func query(_ query: LoopbackQuery) -> (messages: [ReceivedMessage], cursor: MessageHash?) {
        let topics = Set(query.contentTopics)
        let hashes = Set(query.hashes)
        func matches(_ received: ReceivedMessage) -> Bool {
            let message = received.message
            return message.timestamp >= query.startTime && message.timestamp <= query.endTime
                && (topics.isEmpty || topics.contains(message.contentTopic)) && (hashes.isEmpty || hashes.contains(received.hash))
                && (query.pubsubTopic ?? received.pubsubTopic) == received.pubsubTopic
        }
        // One message more than the page shows whether there is a next page.
        var found: [ReceivedMessage] = []
        var isPastCursor = query.cursor == nil
        let ordered = query.isAscending ? Array(archive) : archive.reversed()
        for message in ordered where found.count <= query.pageSize {
            if isPastCursor, matches(message) { found.append(message) }
            if message.hash == query.cursor { isPastCursor = true }
        }
        let hasNext = found.count > query.pageSize
        if hasNext { found.removeLast() }
        // As nwaku: the cursor is the last message in the order of the query, the page is in the order of time.
        return (query.isAscending ? found : found.reversed(), hasNext ? found.last?.hash : nil)
    }
}

package struct LoopbackQuery: Hashable, Sendable {
    package static let all = LoopbackQuery()

    package var pubsubTopic: PubsubTopic?
    /// All when it is empty.
    package var contentTopics: [ContentTopic] = []
    package var startTime = Timestamp(rawValue: .min)
    package var endTime = Timestamp(rawValue: .max)
    /// All when it is empty.
    package var hashes: [MessageHash] = []
    /// The last message of the previous page.
    package var cursor: MessageHash?
    package var isAscending = true
    /// At least 1.
    package var pageSize = 20
}
