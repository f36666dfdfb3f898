import CPushMessages
public import Core
import Waku

/// A query for the devices of registrants. `1 public_keys`: hashes, 64 bytes each.
public struct PushNotificationQuery: Hashable, Sendable {
    /// Queries with more keys are dropped.
    public static let keyLimit = 1000
    private static let fieldLimit = keyLimit + 64

    /// As received. Values that are not 64 bytes long are ignored.
    public let publicKeys: [[UInt8]]

    /// - Parameter publicKeys: At most ``keyLimit``. A query on a registrant's query topic names only that registrant, since its servers alone listen
    ///   there.
    public init(publicKeys: [KeyHash]) {
        self.publicKeys = publicKeys.map(\.bytes)
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        try ProtobufScan.check(bytes, fieldLimit: Self.fieldLimit)
        publicKeys = try ProtobufC.decode(bytes, protobuf__push_notification_query__init) { message throws(ProtobufError) in
            guard message.pointee.n_public_keys <= Self.keyLimit else { throw .tooMany }
            return byteLists(message.pointee.n_public_keys, message.pointee.public_keys)
        }
    }

    /// The protobuf encoding: the payload of an envelope of kind ``MessageKind/query``.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__push_notification_query__init) { message, arena in
            (message.n_public_keys, message.public_keys) = (publicKeys.count, arena.list(publicKeys))
        }
    }
}
