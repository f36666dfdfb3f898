import CPushMessages
public import Core
import Waku

/// The advertisement that a registrant publishes on its contact code topic, so that senders need not query.
///
///     1 push_notification_info: a row for each (server, installation)    2 chat_identity
///
/// Without rows and chat identity it is 0 bytes long.
public struct ContactCodeAdvertisement: Hashable, Sendable {
    /// The devices that the registrant may be notified at, each at the servers that it is registered with.
    public var pushNotificationInfo: [PushNotificationQueryInfo]
    /// An encoded ChatIdentity, passed on unchanged; empty if there is none.
    public var chatIdentity: [UInt8]

    /// - Parameters:
    ///   - pushNotificationInfo: Rows in the order in which receivers read them. Deployed clients stop at the first row without a server key or with
    ///     an invalid grant.
    ///   - chatIdentity: An encoded ChatIdentity; empty for none.
    public init(pushNotificationInfo: [PushNotificationQueryInfo], chatIdentity: [UInt8] = []) {
        self.pushNotificationInfo = pushNotificationInfo
        self.chatIdentity = chatIdentity
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        try PushNotificationQueryInfo.checkCounts(in: bytes)
        self = try ProtobufC.decode(bytes, protobuf__contact_code_advertisement__init) { message throws(ProtobufError) in
            ContactCodeAdvertisement(
                pushNotificationInfo: try elements(
                    message.pointee.n_push_notification_info, message.pointee.push_notification_info, PushNotificationQueryInfo.init),
                chatIdentity: message.pointee.chat_identity.bytes)
        }
    }

    /// The protobuf encoding: the payload of the envelope that ``SignedAdvertisement`` reads and writes.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__contact_code_advertisement__init) { message, arena in
            message.n_push_notification_info = pushNotificationInfo.count
            message.push_notification_info = arena.messages(pushNotificationInfo, protobuf__push_notification_query_info__init) {
                $0.fill(&$1, arena)
            }
            message.chat_identity = arena.data(chatIdentity)
        }
    }
}
