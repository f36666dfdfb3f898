/// The error texts of gorush's Firebase libraries, which occur in `error` of gorush's logs and feedback, and their meaning.
///
/// gorush has used three libraries for Firebase. Each row of ``table`` is a text of one of them, or of the server behind it:
///
/// | library | used by gorush | texts |
/// |---|---|---|
/// | google/go-gcm | before appleboy/go-fcm | the server's codes, unchanged |
/// | appleboy/go-fcm below 1.0 (`response.go`, `client.go`, `message.go`) | until early 2024 | its own text for each code; `<status> error: <status line>` |
/// | firebase-admin-go 4 (`internal/errors.go`, `messaging_errors.go`) by appleboy/go-fcm 1 | since | the server's message; its own text if there is none |
///
/// The messages of firebase-admin-go 3, which some forks of gorush use, have a code in the middle.
///
/// The verdict is *dead* only if the server says that the token existed and no longer does. A token that the server rejects is
/// *doubtful*, because with a wrong key or project of the operator the server rejects all tokens in the same way.
struct FirebaseErrorText: Sendable {
    enum Place: Sendable {
        /// The whole text matches.
        case whole
        case beginning
        /// Anywhere in the text.
        case anywhere
    }

    /// Lowercase, like the text that it is compared with.
    let text: String
    let place: Place
    let reason: FailureReason

    /// The reason of the first matching row; ``FailureReason/other`` if there is none.
    static func reason(for error: String) -> FailureReason {
        let error = error.lowercased()
        return table.first { $0.matches(error) }?.reason ?? .other
    }

    private func matches(_ error: String) -> Bool {
        switch place {
        case .whole: error == text
        case .beginning: error.hasPrefix(text)
        case .anywhere: error.contains(text)
        }
    }

    private static func rows(_ place: Place, _ reason: FailureReason, _ texts: String...) -> [FirebaseErrorText] {
        texts.map { FirebaseErrorText(text: $0.lowercased(), place: place, reason: reason) }
    }

    /// Ordered by precedence: whole texts first, and the cause of a transport error before the error itself.
    static let table: [FirebaseErrorText] =
        // Codes of the legacy HTTP API: google/go-gcm. NotRegistered is also a message of the newer API.
        rows(.whole, .notRegistered, "NotRegistered")
        + rows(.whole, .invalidRegistration, "InvalidRegistration", "MissingRegistration")
        + rows(.whole, .senderIDMismatch, "MismatchSenderId")
        + rows(.whole, .invalidArgument, "InvalidParameters")
        + rows(.whole, .credentials, "InvalidApnsCredential")
        + rows(.whole, .message, "InvalidPackageName", "MessageTooBig", "InvalidDataKey", "InvalidTtl")
        + rows(.whole, .transient, "Unavailable", "InternalServerError", "DeviceMessageRateExceeded", "TopicsMessageRateExceeded")
        // appleboy/go-fcm below 1.0.
        + rows(.whole, .notRegistered, "unregistered device")
        + rows(.whole, .invalidRegistration, "invalid registration token", "missing registration token")
        + rows(.whole, .senderIDMismatch, "mismatched sender id")
        + rows(.whole, .invalidArgument, "check that the provided parameters have the right name and type")
        + rows(.whole, .credentials, "invalid APNs credentials")
        + rows(
            .whole, .message, "invalid package name", "message is too big", "invalid data key", "invalid time to live",
            "message is invalid", "topic is invalid or registration ids are not set", "too many registrations ids",
            "messages time-to-live is invalid")
        + rows(
            .whole, .transient, "timeout", "internal server error", "device message rate exceeded", "topics message rate exceeded")
        + rows(.whole, .other, "unknown error type")
        // Errors of a whole request. The legacy API was shut down in 2024 and answers 404: such a gorush is too old.
        + rows(.beginning, .credentials, "401 error: ", "403 error: ", "404 error: ")
        + rows(.beginning, .transient, "429 error: ", "500 error: ", "502 error: ", "503 error: ", "504 error: ")
        // The server's messages, as passed on by firebase-admin-go 4.
        + rows(.whole, .entityNotFound, "Requested entity was not found.")
        + rows(.whole, .message, "Android message is too big")
        + rows(.beginning, .senderIDMismatch, "SenderId mismatch")
        + rows(.anywhere, .senderIDMismatch, "SENDER_ID_MISMATCH")
        + rows(
            .anywhere, .invalidArgument, "not a valid FCM registration token", "invalid argument", "INVALID_ARGUMENT",
            "Recipient of the message is not set")
        + rows(
            .anywhere, .credentials, "authentication credential", "Auth error from APNS", "Invalid APNs credential",
            "THIRD_PARTY_AUTH_ERROR", "APNS_AUTH_ERROR", "invalid_grant", "oauth2: cannot fetch token",
            "cloudmessaging.messages.create' denied", "has not been used in project", "The caller does not have permission")
        + rows(.beginning, .transient, "Quota exceeded", "Internal error encountered", "The service is currently unavailable")
        + rows(.anywhere, .transient, "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED")
        // Codes of firebase-admin-go 3. A missing permission of the operator has the same code as a wrong sender.
        + rows(.anywhere, .notRegistered, "code: registration-token-not-registered")
        + rows(.anywhere, .senderIDMismatch, "code: mismatched-credential")
        + rows(.anywhere, .invalidArgument, "invalid-argument")
        + rows(.anywhere, .credentials, "invalid-apns-credentials", "third-party-auth-error")
        + rows(.anywhere, .transient, "code: message-rate-exceeded", "code: server-unavailable", "code: internal-error")
        // firebase-admin-go 4, without a response.
        + rows(
            .beginning, .transient, "timed out while making an http call", "failed to establish a connection",
            "unknown error while making an http call", "unexpected http response with status: 5",
            "unexpected http response with status: 429")
}
