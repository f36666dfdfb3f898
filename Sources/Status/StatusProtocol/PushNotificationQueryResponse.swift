import CPushMessages
public import Wire
import Core
import Waku

/// The answer to a query.
///
///     1 info    2 message_id: the id of the query's envelope    3 success
public struct PushNotificationQueryResponse: Hashable, Sendable {
    public let info: [PushNotificationQueryInfo]
    public let messageID: [UInt8]
    public let success: Bool

    public init(info: [PushNotificationQueryInfo], messageID: [UInt8], success: Bool = true) {
        self.info = info
        self.messageID = messageID
        self.success = success
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        try PushNotificationQueryInfo.checkCounts(in: bytes)
        self = try ProtobufC.decode(bytes, protobuf__push_notification_query_response__init) { message throws(ProtobufError) in
            PushNotificationQueryResponse(
                info: try PushNotificationQueryInfo.rows(message.pointee.n_info, message.pointee.info),
                messageID: message.pointee.message_id.bytes, success: message.pointee.success != 0)
        }
    }

    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__push_notification_query_response__init) { message, arena in
            message.n_info = info.count
            message.info = arena.messages(info, protobuf__push_notification_query_info__init) { $0.fill(&$1, arena) }
            message.message_id = arena.data(messageID)
            message.success = success ? 1 : 0
        }
    }
}
