/// What gorush's Firebase libraries call a failure, as it stands in `error` of gorush's logs and feedback, and what it means.
///
/// gorush had three libraries for Firebase. Each row of ``table`` is a text that one of them, or the server behind it, has had:
///
/// | library | in gorush | its texts |
/// |---|---|---|
/// | google/go-gcm | before appleboy/go-fcm | the codes of the server, as they are |
/// | appleboy/go-fcm below 1.0 (`response.go`, `client.go`, `message.go`) | until early 2024 | a text of its own for each code; `<status> error: <status line>` |
/// | firebase-admin-go 4 (`internal/errors.go`, `messaging_errors.go`) by appleboy/go-fcm 1 | since | the server's message; a text of its own where there is none |
///
/// The messages of firebase-admin-go 3, which some forks of gorush use, have a code in the middle.
///
/// What a verdict is: *dead* only where the server says that the token existed and does so no longer. A token that the server does not
/// accept is *doubtful*, since a wrong key or project of the operator's makes it say the same of all tokens.
struct FirebaseErrorText: Sendable {
    enum Place: Sendable {
        /// It is the whole text.
        case whole
        case beginning
        /// Anywhere in it.
        case anywhere
    }

    /// Lower case; so is what it is compared with.
    let text: String
    let place: Place
    let reason: FailureReason

    /// The first row that fits; ``FailureReason/other`` when none does.
    static func reason(for error: String) -> FailureReason {
        let error = error.lowercased()
        return table.first { $0.fits(error) }?.reason ?? .other
    }

    private func fits(_ error: String) -> Bool {
        switch place {
        case .whole: error == text
        case .beginning: error.hasPrefix(text)
        case .anywhere: error.contains(text)
        }
    }

    private static func whole(_ reason: FailureReason, _ texts: String...) -> [FirebaseErrorText] {
        texts.map { FirebaseErrorText(text: $0.lowercased(), place: .whole, reason: reason) }
    }

    private static func beginning(_ reason: FailureReason, _ texts: String...) -> [FirebaseErrorText] {
        texts.map { FirebaseErrorText(text: $0.lowercased(), place: .beginning, reason: reason) }
    }

    private static func anywhere(_ reason: FailureReason, _ texts: String...) -> [FirebaseErrorText] {
        texts.map { FirebaseErrorText(text: $0.lowercased(), place: .anywhere, reason: reason) }
    }

    /// Whole texts first, and what a transport error is about before that it is one.
    static let table: [FirebaseErrorText] =
        // The codes of the legacy HTTP API: google/go-gcm. One of the newer API's messages is NotRegistered too.
        whole(.notRegistered, "NotRegistered")
        + whole(.invalidRegistration, "InvalidRegistration", "MissingRegistration")
        + whole(.senderIDMismatch, "MismatchSenderId")
        + whole(.invalidArgument, "InvalidParameters")
        + whole(.credentials, "InvalidApnsCredential")
        + whole(.message, "InvalidPackageName", "MessageTooBig", "InvalidDataKey", "InvalidTtl")
        + whole(.transient, "Unavailable", "InternalServerError", "DeviceMessageRateExceeded", "TopicsMessageRateExceeded")
        // appleboy/go-fcm below 1.0.
        + whole(.notRegistered, "unregistered device")
        + whole(.invalidRegistration, "invalid registration token", "missing registration token")
        + whole(.senderIDMismatch, "mismatched sender id")
        + whole(.invalidArgument, "check that the provided parameters have the right name and type")
        + whole(.credentials, "invalid APNs credentials")
        + whole(
            .message, "invalid package name", "message is too big", "invalid data key", "invalid time to live", "message is invalid",
            "topic is invalid or registration ids are not set", "too many registrations ids", "messages time-to-live is invalid")
        + whole(
            .transient, "timeout", "internal server error", "device message rate exceeded", "topics message rate exceeded")
        + whole(.other, "unknown error type")
        // Of the whole request. Since 2024 the legacy API is gone, and answers 404: such a gorush is too old.
        + beginning(.credentials, "401 error: ", "403 error: ", "404 error: ")
        + beginning(.transient, "429 error: ", "500 error: ", "502 error: ", "503 error: ", "504 error: ")
        // The server's messages, by firebase-admin-go 4.
        + whole(.entityNotFound, "Requested entity was not found.")
        + beginning(.senderIDMismatch, "SenderId mismatch")
        + anywhere(.senderIDMismatch, "SENDER_ID_MISMATCH")
        + anywhere(
            .invalidArgument, "not a valid FCM registration token", "invalid argument", "INVALID_ARGUMENT",
            "Recipient of the message is not set")
        + anywhere(
            .credentials, "authentication credential", "Auth error from APNS", "Invalid APNs credential", "THIRD_PARTY_AUTH_ERROR",
            "APNS_AUTH_ERROR", "invalid_grant", "oauth2: cannot fetch token", "cloudmessaging.messages.create' denied",
            "has not been used in project", "The caller does not have permission")
        + beginning(.transient, "Quota exceeded", "Internal error encountered", "The service is currently unavailable")
        + anywhere(.transient, "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED")
        // firebase-admin-go 3: its codes. A missing permission of the operator's has the code of a wrong sender.
        + anywhere(.notRegistered, "code: registration-token-not-registered")
        + anywhere(.senderIDMismatch, "code: mismatched-credential")
        + anywhere(.invalidArgument, "invalid-argument")
        + anywhere(.credentials, "invalid-apns-credentials", "third-party-auth-error")
        + anywhere(.transient, "code: message-rate-exceeded", "code: server-unavailable", "code: internal-error")
        // Without an answer, by firebase-admin-go 4.
        + beginning(
            .transient, "timed out while making an http call", "failed to establish a connection",
            "unknown error while making an http call", "unexpected http response with status: 5",
            "unexpected http response with status: 429")
}
