import NodeAPI
import RateLimits
import Waku

/// The messages that wait for topic keys, in bounded memory. If there are too many, the topic with most waiting loses its oldest, and topics of
/// strangers lose before those of known registrants: so junk on some topics displaces no queries on others.
struct MessagesAwaitingKeys {
    private var space: FairSpace<UInt64>
    private var messages: [UInt64: Incoming] = [:]
    private var byTopic: [TopicTag: [UInt64]] = [:]
    private var added: UInt64 = 0

    /// - Parameter capacity: in units of 4 KiB, at least one for each message.
    init(capacity: Int) {
        space = FairSpace(capacity: capacity, quantum: 1)
    }

    var cost: Int { space.cost }

    struct Addition {
        /// Whether this is the only message on its topic, so that the caller must request the keys.
        let isFirst: Bool
        /// The displaced messages, with the standing of their topics' registrants.
        let displaced: [Incoming]
    }

    mutating func add(_ incoming: Incoming, charge: Charge) -> Addition {
        added += 1
        // Topics that are being served stay in this table even if all of their messages are displaced.
        let isFirst = byTopic[incoming.tag] == nil
        messages[added] = incoming
        byTopic[incoming.tag, default: []].append(added)
        let displaced = space.add(added, cost: incoming.cost, by: charge.payer, charge.standing).compactMap { id -> Incoming? in
            guard let message = messages.removeValue(forKey: id) else { return nil }
            if let index = byTopic[message.tag]?.firstIndex(of: id) { byTopic[message.tag]?.remove(at: index) }
            return message
        }
        return Addition(isFirst: isFirst, displaced: displaced)
    }

    /// Removes the messages on a topic, in the order in which they came in.
    mutating func take(_ tag: TopicTag) -> [Incoming] {
        (byTopic.removeValue(forKey: tag) ?? []).compactMap { id in
            space.remove(id)
            return messages.removeValue(forKey: id)
        }
    }
}
