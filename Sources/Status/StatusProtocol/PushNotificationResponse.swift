import CPushMessages
public import Core
import Waku

/// The report for one entry of a request.
public struct PushNotificationReport: Hashable, Sendable {
    /// The reasons for not sending a notification, numbered as in the protobuf message.
    public enum ErrorType: UInt32, Sendable, CaseIterable {
        /// The notification has type 0. Also stands for numbers that this version does not know.
        case unknown = 0
        /// The access token is not the registration's: query again.
        case wrongToken = 1
        /// gorush did not accept the notification in time (the server keeps trying), or the entry is too large.
        case internalError = 2
        /// The server has no registration for this key hash and installation id.
        case notRegistered = 3
    }

    /// nil is success.
    public var error: ErrorType?
    /// The value of the entry.
    public var publicKey: [UInt8]
    /// The device of the entry.
    public var installationID: InstallationID

    /// - Parameters:
    ///   - error: nil for success, also when the registrant's filters suppressed the notification.
    ///   - publicKey: The key hash of the entry.
    ///   - installationID: The installation id of the entry.
    public init(error: ErrorType?, publicKey: [UInt8], installationID: InstallationID) {
        self.error = error
        self.publicKey = publicKey
        self.installationID = installationID
    }

    init(_ message: Protobuf__PushNotificationReport) throws(ProtobufError) {
        error = message.success != 0 ? nil : ErrorType(rawValue: message.error.rawValue) ?? .unknown
        publicKey = message.public_key.bytes
        installationID = InstallationID(bytes: try message.installation_id.utf8())
    }

    func fill(_ message: inout Protobuf__PushNotificationReport, _ arena: ProtobufArena) {
        message.success = error == nil ? 1 : 0
        message.error = Protobuf__PushNotificationReport__ErrorType(rawValue: error?.rawValue ?? 0)
        message.public_key = arena.data(publicKey)
        message.installation_id = arena.data(installationID.bytes)
    }
}

/// The answer to a request.
///
///     1 message_id: the request's    2 reports: one for each entry, in order
public struct PushNotificationResponse: Hashable, Sendable {
    private static let fieldLimit = 10_000
    private static let nestedFieldLimit = 64

    /// Matches the answer to the request.
    public let messageID: [UInt8]
    /// In the order of the request's entries.
    public let reports: [PushNotificationReport]

    /// - Parameters:
    ///   - messageID: The `message_id` of the request, not the id of its envelope.
    ///   - reports: One for each entry of the request, in the same order.
    public init(messageID: [UInt8], reports: [PushNotificationReport]) {
        self.messageID = messageID
        self.reports = reports
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        try ProtobufScan.checkNested(bytes, field: 2, fieldLimit: Self.fieldLimit, nestedFieldLimit: Self.nestedFieldLimit)
        self = try ProtobufC.decode(bytes, protobuf__push_notification_response__init) { message throws(ProtobufError) in
            PushNotificationResponse(
                messageID: message.pointee.message_id.bytes,
                reports: try elements(message.pointee.n_reports, message.pointee.reports, PushNotificationReport.init))
        }
    }

    /// The protobuf encoding: the payload of an envelope of kind ``MessageKind/response``.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__push_notification_response__init) { message, arena in
            message.message_id = arena.data(messageID)
            message.n_reports = reports.count
            message.reports = arena.messages(reports, protobuf__push_notification_report__init) { $0.fill(&$1, arena) }
        }
    }
}
