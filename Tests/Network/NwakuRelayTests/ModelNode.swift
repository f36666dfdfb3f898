import Core
import Waku

/// A simulated node: a cache that loses messages, subscriptions that are lost on a restart, and a store that adds messages with a
/// delay. All times are true ones.
struct ModelNode {
    struct Kept {
        let message: ReceivedMessage
        let keptAt: Timestamp
    }

    static let contentTopic = ContentTopic(TopicTag(rawValue: 7))
    private static let storeLag = Duration.milliseconds(900)
    private static let pageSize = 5

    let cacheCapacity: Int
    private(set) var subscriptions: Set<PubsubTopic> = []
    /// Sorted by the sender's time; `message` is set for the client's messages.
    private var cache: [(topic: PubsubTopic, sentAt: Timestamp, message: ReceivedMessage?)] = []
    /// The client's messages, sorted by the sender's time.
    private var archive: [Kept] = []
    /// Incremented when the store restarts, which invalidates cursors.
    private var epoch = 0

    init(cacheCapacity: Int) {
        self.cacheCapacity = cacheCapacity
    }

    mutating func subscribe(to topics: [PubsubTopic]) { subscriptions.formUnion(topics) }

    mutating func restart() {
        subscriptions = []
        cache = []
    }

    mutating func restartStore() { epoch += 1 }

    /// A message for the client reaches the node, if it is up, and the store in any case.
    mutating func arrive(_ message: ReceivedMessage, isUp: Bool, at now: Timestamp) {
        var index = archive.count
        while index > 0, archive[index - 1].message.message.timestamp > message.message.timestamp { index -= 1 }
        archive.insert(Kept(message: message, keptAt: now + Self.storeLag), at: index)
        if isUp { keep(message.pubsubTopic, message.message.timestamp, message) }
    }

    mutating func arriveForeign(on topic: PubsubTopic, sentAt: Timestamp) { keep(topic, sentAt, nil) }

    private mutating func keep(_ topic: PubsubTopic, _ sentAt: Timestamp, _ message: ReceivedMessage?) {
        guard subscriptions.contains(topic) else { return }
        if cache.count >= cacheCapacity, let oldest = cache.indices.min(by: { cache[$0].sentAt < cache[$1].sentAt }) {
            cache.remove(at: oldest)
        }
        cache.append((topic, sentAt, message))
    }

    /// nil without a subscription.
    mutating func poll(_ topic: PubsubTopic) -> (count: Int, ours: [ReceivedMessage])? {
        guard subscriptions.contains(topic) else { return nil }
        var ours: [ReceivedMessage] = []
        var count = 0
        cache.removeAll { cached in
            guard cached.topic == topic else { return false }
            count += 1
            if let message = cached.message { ours.append(message) }
            return true
        }
        return (count, ours)
    }

    /// nil when the cursor is invalid.
    func query(_ query: StoreQuery, at now: Timestamp) -> StorePage? {
        precondition(query.contentTopics == [Self.contentTopic])
        var index: Int
        if let cursor = query.cursor {
            let parts = cursor.split(separator: " ").compactMap { Int($0) }
            guard parts[0] == epoch else { return nil }
            index = parts[1]
            // Messages may have been added before the cursor: it names a message, not a position.
            while index < archive.count, archive[index].message.message.payload != payload(parts[2]) { index += 1 }
            index += 1
        } else {
            var (low, high) = (0, archive.count)
            while low < high {
                let middle = (low + high) / 2
                if archive[middle].message.message.timestamp < query.startTime ?? Timestamp(rawValue: 0) {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            index = low
        }
        var page: [ReceivedMessage] = []
        var last = index
        while index < archive.count, page.count < Self.pageSize {
            let kept = archive[index]
            if kept.keptAt <= now, kept.message.pubsubTopic == query.pubsubTopic {
                page.append(kept.message)
                last = index
            }
            index += 1
        }
        let cursor = page.count == Self.pageSize ? "\(epoch) \(last) \(number(page[page.count - 1]))" : nil
        return StorePage(messages: page, hashes: [], cursor: cursor)
    }
}

/// A message's number, as its payload.
func payload(_ number: Int) -> [UInt8] { withUnsafeBytes(of: number.bigEndian, Array.init) }
func number(_ message: ReceivedMessage) -> Int { message.message.payload.reduce(0) { $0 << 8 | Int($1) } }
