import CPushMessages
public import Core
import Waku

/// The answer to a registration.
///
///     1 success    2 error    3 request_id: SHAKE-256 of the sealed registration, 64 bytes
public struct PushNotificationRegistrationResponse: Hashable, Sendable {
    /// The reasons for a refusal, numbered as in the protobuf message. The order of the checks is in `PROTOCOL.md` section 4.
    public enum ErrorType: UInt32, Sendable, CaseIterable {
        /// Also stands for numbers that this version does not know.
        case unknown = 0
        /// Repeating the registration does not help until it is changed.
        case malformedMessage = 1
        /// The version is not higher than the stored one. The answer does not contain the stored one.
        case versionMismatch = 2
        /// The token type is neither APNs nor Firebase, or the server has no gorush endpoint for the app.
        case unsupportedTokenType = 3
        /// The server failed to store the registration: try again later.
        case internalError = 4
    }

    /// nil is success.
    public let error: ErrorType?
    /// Matches the answer to the registration.
    public let requestID: [UInt8]

    /// - Parameters:
    ///   - error: nil for success.
    ///   - requestID: SHAKE-256 of the sealed registration, 64 bytes.
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

    /// The protobuf encoding: the payload of an envelope of kind ``MessageKind/registrationResponse``.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__push_notification_registration_response__init) { message, arena in
            message.success = error == nil ? 1 : 0
            message.error = Protobuf__PushNotificationRegistrationResponse__ErrorType(rawValue: error?.rawValue ?? 0)
            message.request_id = arena.data(requestID)
        }
    }
}
