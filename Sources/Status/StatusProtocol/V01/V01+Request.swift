import CPushMessages
public import Core
import Waku

extension V01 {
    /// An entry of a ``Request``: notifies the devices of one record.
    public struct PushNotification: Hashable, Sendable {
        /// Selects the record.
        public var accessToken: AccessToken
        /// SHA3-256 of the chat's id, as received: raw bytes or hexadecimal digits.
        public var chatID: [UInt8]

        /// - Parameters:
        ///   - accessToken: Selects the record.
        ///   - chatID: SHA3-256 of the chat's id, 32 bytes: see ``V01/chatHash(_:)``.
        public init(accessToken: AccessToken, chatID: [UInt8]) {
            self.accessToken = accessToken
            self.chatID = chatID
        }
    }

    /// A request to notify devices.
    ///
    ///     1 requests    2 message: encrypted, for the devices    3 message_id    4 ack_key: see ``AckKey``
    public struct Request: Hashable, Sendable {
        /// Requests with more entries are dropped.
        public static let notificationLimit = 1000
        /// Limit of chat and message together in bytes. APNs and Firebase accept 4 KiB in total.
        public static let contentByteLimit = 16 << 10

        /// 1 to ``notificationLimit`` entries.
        public var requests: [PushNotification]
        /// Encrypted for the devices, and passed to the app unchanged.
        public var message: [UInt8]
        /// The message's id, UTF-8: a device is notified once per message_id.
        public var messageID: [UInt8]
        /// As received.
        public var ackKey: [UInt8]

        /// - Parameters:
        ///   - requests: 1 to ``notificationLimit`` entries.
        ///   - message: Encrypted for the devices. Counts towards ``contentByteLimit``.
        ///   - messageID: UTF-8, not empty.
        ///   - ackKey: 32 random bytes, raw or in hexadecimal digits. With any other length the request is not acknowledged.
        public init(requests: [PushNotification], message: [UInt8], messageID: [UInt8], ackKey: [UInt8]) {
            self.requests = requests
            self.message = message
            self.messageID = messageID
            self.ackKey = ackKey
        }

        public init(parsing bytes: [UInt8]) throws(ProtobufError) {
            try ProtobufScan.checkNested(bytes, field: 1, fieldLimit: Self.notificationLimit + 64, nestedFieldLimit: 64)
            self = try ProtobufC.decode(bytes, protobuf__v01__request__init) { message throws(ProtobufError) in
                let message = message.pointee
                guard message.n_requests <= Self.notificationLimit else { throw .tooMany }
                let requests = try elements(message.n_requests, message.requests) { entry throws(ProtobufError) in
                    PushNotification(
                        accessToken: AccessToken(bytes: try entry.access_token.boundedUTF8()), chatID: entry.chat_id.bytes)
                }
                return Request(
                    requests: requests, message: message.message.bytes, messageID: try message.message_id.boundedUTF8(),
                    ackKey: message.ack_key.bytes)
            }
        }

        /// The protobuf encoding: the payload of an ``Envelope`` of type ``MessageType/request``.
        public func encoded() -> [UInt8] {
            ProtobufC.encode(protobuf__v01__request__init) { message, arena in
                (message.n_requests, message.requests) = (
                    requests.count,
                    arena.messages(requests, protobuf__v01__push_notification__init) { request, entry in
                        entry.access_token = arena.data(request.accessToken.bytes)
                        entry.chat_id = arena.data(request.chatID)
                    }
                )
                message.message = arena.data(self.message)
                message.message_id = arena.data(messageID)
                message.ack_key = arena.data(ackKey)
            }
        }
    }

    /// The answer to a ``Request``, on the topic of its ``AckKey``.
    ///
    ///     1 id: the request's ack_key, as received    2 success    3 error
    public struct Acknowledgement: Hashable, Sendable {
        /// The reasons for a failure, numbered as in the protobuf message. ``badToken`` takes precedence.
        public enum ErrorType: UInt32, Sendable, CaseIterable {
            /// Stands for numbers that this version does not know.
            case unknown = 0
            /// An access token selects no record.
            case badToken = 1
            /// gorush did not accept all notifications in time.
            case internalError = 2
        }

        /// Matches the acknowledgement to the request: its ack_key as received.
        public let id: [UInt8]
        /// nil is success.
        public let error: ErrorType?

        /// - Parameters:
        ///   - id: The request's ack_key, as received.
        ///   - error: nil when gorush accepted all notifications, or filters left none.
        public init(id: [UInt8], error: ErrorType?) {
            self.id = id
            self.error = error
        }

        public init(parsing bytes: [UInt8]) throws(ProtobufError) {
            try ProtobufScan.check(bytes, fieldLimit: 64)
            self = try ProtobufC.decode(bytes, protobuf__v01__acknowledgement__init) {
                let error = ErrorType(rawValue: $0.pointee.error.rawValue) ?? .unknown
                return Acknowledgement(id: $0.pointee.id.bytes, error: $0.pointee.success != 0 ? nil : error)
            }
        }

        /// The protobuf encoding: the payload of an ``Envelope`` of type ``MessageType/acknowledgement``.
        public func encoded() -> [UInt8] {
            ProtobufC.encode(protobuf__v01__acknowledgement__init) { message, arena in
                message.id = arena.data(id)
                message.success = error == nil ? 1 : 0
                message.error = Protobuf__V01__Acknowledgement__ErrorType(rawValue: error?.rawValue ?? 0)
            }
        }
    }
}

extension DeliveryID {
    private static let domain = Array("status-v0.1".utf8)

    /// The delivery id of a version 0.1 message: SHA-256("status-v0.1" ‖ key hash(32) ‖ length of message_id as 8 bytes big-endian ‖ message_id ‖
    /// installation id).
    public init(messageID: [UInt8], registrant: V01.KeyHash, installationID: InstallationID) {
        let length = withUnsafeBytes(of: UInt64(messageID.count).bigEndian, Array.init)
        self.init(hashing: Self.domain, registrant.stored, length, messageID, installationID.bytes)
    }
}
