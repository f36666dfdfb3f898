import NodeMetrics
import ProtobufWire
import PushServer
import StatusProtocol
import Waku
import WakuCrypto

/// A message of ours that was opened, and what it asks for.
struct Work: Sendable {
    enum Task: Sendable {
        case registration(RegistrationClaim)
        case query(PushNotificationQuery, MetadataEnvelope)
        case request(PushNotificationRequest, MetadataEnvelope, expires: Timestamp)
    }

    let task: Task
    let hash: MessageHash
    let pubsubTopic: PubsubTopic
    /// The room that it takes, in units of 4 KiB.
    let cost: Int
    var times: MessageTimes?
}

/// Why a message ends here.
struct Drop: Error {
    let counter: Counter

    init(_ counter: Counter) {
        self.counter = counter
    }

    init(_ error: OpeningError) {
        counter =
            switch error {
            case .version: .droppedVersion
            case .undecryptable: .droppedUndecryptable
            case .malformed: .droppedMalformedPayload
            case .unsigned: .droppedUnsigned
            }
    }

    init(_ error: EnvelopeError) {
        counter =
            switch error {
            case .malformed: .droppedMalformedEnvelope
            case .otherKind: .droppedOtherKind
            case .empty: .droppedEmpty
            case .badSignature: .droppedBadSignature
            }
    }

    init(_ error: ProtobufError) {
        counter = error == .tooMany ? .droppedTooMany : .droppedMalformedMessage
    }
}
