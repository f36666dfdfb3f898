package import NodeMetrics
import Synchronization
package import Waku

/// What is to be published as an answer to a message.
package struct Reply: Sendable {
    /// Of the message that it answers.
    package let kind: KindLabel
    /// Whoever asked made a key for the answer, and subscribes to its topic only now: it is held for ``NodeConfiguration/replyDelay``. A
    /// registrant listens to the topic of its identity already.
    package let isHeld: Bool
    /// The pubsub topic that the question came in on.
    package let pubsubTopic: PubsubTopic
    /// Of the question.
    package let times: MessageTimes?
    /// The message that it answers.
    package let question: MessageHash?
    /// Of what it holds, before it is sealed.
    package let byteCount: Int
    /// Makes the messages anew for each publication: one that the network dropped for its hash would be dropped again.
    package let seal: @Sendable (_ now: Timestamp) -> [WakuMessage]

    package init(
        kind: KindLabel, isHeld: Bool, pubsubTopic: PubsubTopic, times: MessageTimes?, question: MessageHash?, byteCount: Int,
        seal: @escaping @Sendable (_ now: Timestamp) -> [WakuMessage]
    ) {
        self.kind = kind
        self.isHeld = isHeld
        self.pubsubTopic = pubsubTopic
        self.times = times
        self.question = question
        self.byteCount = byteCount
        self.seal = seal
    }
}

package protocol ReplyPublishing: Sendable {
    /// Publishes a reply as soon as it is due.
    func publish(_ reply: Reply)
}

/// Publishes by a publisher that is made later: before anything runs.
final class LateReplies: ReplyPublishing {
    private let publisher = Mutex<Publisher?>(nil)

    func set(_ publisher: Publisher) {
        self.publisher.withLock { $0 = publisher }
    }

    func publish(_ reply: Reply) {
        publisher.withLock(\.self)?.publish(reply)
    }
}
