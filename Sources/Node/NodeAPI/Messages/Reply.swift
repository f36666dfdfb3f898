package import NodeMetrics
package import Core
package import RateLimits
package import Waku

/// An answer to be published.
public struct Reply: Sendable {
    /// The kind of the message that it answers.
    package let kind: KindLabel
    /// Whether it is dropped when it has waited too long for its publication. An answer to a registration counts however late it comes: the client
    /// stays subscribed to the topic of its own key.
    package let expires: Bool
    /// The pubsub topic of the message that it answers.
    package let pubsubTopic: PubsubTopic
    /// The times of the message that it answers.
    package var times: MessageTimes?
    /// The hash of the message that it answers.
    package let question: MessageHash?
    /// The payer of its place among the answers that wait for publication.
    package let charge: Charge
    /// Size of the content before it is sealed.
    package let byteCount: Int
    /// Makes new messages for each publication: peers drop a message whose hash they have seen.
    package let seal: @Sendable (_ now: Timestamp) -> [WakuMessage]

    package init(
        kind: KindLabel, expires: Bool, pubsubTopic: PubsubTopic, times: MessageTimes?, question: MessageHash?, charge: Charge,
        byteCount: Int, seal: @escaping @Sendable (_ now: Timestamp) -> [WakuMessage]
    ) {
        self.kind = kind
        self.expires = expires
        self.pubsubTopic = pubsubTopic
        self.times = times
        self.question = question
        self.charge = charge
        self.byteCount = byteCount
        self.seal = seal
    }
}

extension Reply {
    /// One reply with the messages of several identities to the same question; nil without any.
    package init?(joining replies: [Reply]) {
        guard let first = replies.first else { return nil }
        guard replies.count > 1 else {
            self = first
            return
        }
        self.init(
            kind: first.kind, expires: first.expires, pubsubTopic: first.pubsubTopic, times: first.times, question: first.question,
            charge: first.charge, byteCount: replies.reduce(0) { $0 + $1.byteCount }
        ) { now in replies.flatMap { $0.seal(now) } }
    }
}

package protocol ReplyPublishing: Sendable {
    /// Publishes a reply as soon as it is due.
    func publish(_ reply: Reply)
}
