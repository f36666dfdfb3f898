package import NodeMetrics
package import Core
package import RateLimits
package import Waku

/// An answer to be published.
public struct Reply: Sendable {
    /// The kind of the message that it answers.
    package let kind: KindLabel
    /// Whether it is held for the reply delay, because the client subscribes only now to the topic of the key that it created for the answer.
    /// Registrations are answered on a topic to which the client is already subscribed.
    package let isHeld: Bool
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
        kind: KindLabel, isHeld: Bool, pubsubTopic: PubsubTopic, times: MessageTimes?, question: MessageHash?, charge: Charge,
        byteCount: Int, seal: @escaping @Sendable (_ now: Timestamp) -> [WakuMessage]
    ) {
        self.kind = kind
        self.isHeld = isHeld
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
            kind: first.kind, isHeld: first.isHeld, pubsubTopic: first.pubsubTopic, times: first.times, question: first.question,
            charge: first.charge, byteCount: replies.reduce(0) { $0 + $1.byteCount }
        ) { now in replies.flatMap { $0.seal(now) } }
    }
}

package protocol ReplyPublishing: Sendable {
    /// Publishes a reply as soon as it is due.
    func publish(_ reply: Reply)
}
