import Gorush
import PushNode
import StatusProtocol
import Waku
import WakuCrypto

@testable import StatusServer

extension Reply {
    /// Of a server with a key that nobody knows.
    static func test(_ payload: [UInt8], to recipient: PublicKey, kind: MessageKind = .response) -> Reply {
        StatusReplies(identity: .generate()).reply(
            kind, payload, to: recipient, on: .statusDefault, times: nil, question: MessageHash(bytes: [UInt8](repeating: 0, count: 32)))
    }
}

extension Gorush.Notification {
    /// Of one that tells of a Status message.
    var status: StatusContent? { content as? StatusContent }
    var message: [UInt8] { status?.message ?? [] }
    var registrant: KeyHash? { status?.registrant }
}
