import NodeMetrics
import StatusProtocol
import Waku
import WakuCrypto

/// What is to be published: to whom, where, and what.
struct Answer: Sendable {
    let kind: MessageKind
    let payload: [UInt8]
    let recipient: PublicKey
    /// The pubsub topic that the question came in on.
    let pubsubTopic: PubsubTopic
    /// Of the question.
    var times: MessageTimes?
    /// The message that it answers.
    var question: MessageHash?
}
