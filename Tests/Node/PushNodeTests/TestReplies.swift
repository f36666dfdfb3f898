import NodeAPI
import Delivery
import RateLimits
import StatusProtocol
import Waku
import WakuCrypto

@testable import StatusServer

extension Reply {
    /// Replies of a server with a random key.
    static func test(_ payload: [UInt8], to recipient: PublicKey, kind: MessageKind = .response, charge: Charge = .unattributed) -> Reply {
        StatusReplies(identity: .generate()).reply(
            kind, payload, to: recipient, on: .statusDefault, times: nil, question: MessageHash(bytes: [UInt8](repeating: 0, count: 32)),
            charge: charge)
    }
}

extension Delivery.Notification {
    /// The reply with a Status message.
    var status: StatusContent? { content as? StatusContent }
    var message: [UInt8] { status?.message ?? [] }
    var registrant: KeyHash? { status?.registrant }
}
