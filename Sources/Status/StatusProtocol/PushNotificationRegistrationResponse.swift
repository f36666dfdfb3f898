import CPushMessages
public import Wire
import Core
import Waku

/// The answer to a registration.
///
///     1 success    2 error    3 request_id: SHAKE-256 of the sealed registration, 64 bytes
public struct PushNotificationRegistrationResponse: Hashable, Sendable {
    public enum ErrorType: UInt32, Sendable, CaseIterable {
        case unknown = 0
        case malformedMessage = 1
        case versionMismatch = 2
        case unsupportedTokenType = 3
        case internalError = 4
    }

    /// nil is success.
    public let error: ErrorType?
    public let requestID: [UInt8]

    public init(error: ErrorType?, requestID: [UInt8]) {
        self.error = error
        self.requestID = requestID
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        try ProtobufScan.check(bytes, fieldLimit: 64)
        self = try ProtobufC.decode(bytes, protobuf__push_notification_registration_response__init) {
            let error = ErrorType(rawValue: $0.pointee.error.rawValue) ?? .unknown
            return PushNotificationRegistrationResponse(
                error: $0.pointee.success != 0 ? nil : error, requestID: $0.pointee.request_id.bytes)
        }
    }

    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__push_notification_registration_response__init) { message, arena in
            message.success = error == nil ? 1 : 0
            message.error = Protobuf__PushNotificationRegistrationResponse__ErrorType(rawValue: error?.rawValue ?? 0)
            message.request_id = arena.data(requestID)
        }
    }
}
