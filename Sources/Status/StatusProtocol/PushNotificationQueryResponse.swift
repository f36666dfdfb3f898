import CPushMessages
public import Core
import Waku

/// The answer to a query.
///
///     1 info    2 message_id: the id of the query's envelope    3 success
public struct PushNotificationQueryResponse: Hashable, Sendable {
    /// A row for each registration of each key in the query. Servers do not answer when there is none.
    public let info: [PushNotificationQueryInfo]
    /// The id of the query's ``MetadataEnvelope``, 32 bytes: matches the answer to the query.
    public let messageID: [UInt8]
    /// True in all answers of servers that follow the specification.
    public let success: Bool

    /// - Parameters:
    ///   - info: A row for each registration that was found.
    ///   - messageID: The id of the query's envelope, 32 bytes.
    ///   - success: Servers send true.
    public init(info: [PushNotificationQueryInfo], messageID: [UInt8], success: Bool = true) {
        self.info = info
        self.messageID = messageID
        self.success = success
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        try PushNotificationQueryInfo.checkCounts(in: bytes)
        self = try ProtobufC.decode(bytes, protobuf__push_notification_query_response__init) { message throws(ProtobufError) in
            PushNotificationQueryResponse(
                info: try elements(message.pointee.n_info, message.pointee.info, PushNotificationQueryInfo.init),
                messageID: message.pointee.message_id.bytes, success: message.pointee.success != 0)
        }
    }

    /// The protobuf encoding: the payload of an envelope of kind ``MessageKind/queryResponse``.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__push_notification_query_response__init) { message, arena in
            message.n_info = info.count
            message.info = arena.messages(info, protobuf__push_notification_query_info__init) { $0.fill(&$1, arena) }
            message.message_id = arena.data(messageID)
            message.success = success ? 1 : 0
        }
    }
}
