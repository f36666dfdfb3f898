import StatusProtocol

/// A deviation of `PROTOCOL.md`, section 7, from the reference's recorded behaviour in a flow.
enum FlowDeviation {
    /// The error in the answer to a registration; nil is success.
    case registration(PushNotificationRegistrationResponse.ErrorType?)
    case silence
    /// The rows of a query contain the server's key, and include registrations that the reference refused.
    case rows(alsoFrom: [String])
    /// A report for each entry, and the notifications sent.
    case reports([PushNotificationReport.ErrorType?], notified: Notified)

    enum Notified: Hashable {
        case asRecorded
        case nothing
        /// gorush fails until the request is answered; then it receives the notifications of flow `like`.
        case later(like: String)
    }

    private static let acceptedHere = ["reg_err_installation_not_uuid", "reg_version_2_63"]

    static let all: [String: FlowDeviation] = [
        "reg_err_version_zero": .registration(.malformedMessage),
        "reg_err_installation_not_uuid": .registration(nil),
        "reg_err_token_type_unknown": .registration(.unsupportedTokenType),
        "reg_ok_token_type_3": .registration(.unsupportedTokenType),
        "reg_ok_apn_topic_missing": .registration(.malformedMessage),
        "reg_version_2_63": .registration(nil),
        "reg_err_empty_plaintext": .registration(.malformedMessage),
        "unregister_never_registered_twice": .registration(.versionMismatch),

        "reg_err_not_decryptable": .silence,
        "reg_err_too_short": .silence,
        "reg_amm_wrong_signature": .silence,
        "query_unknown_key_on_known_topic": .silence,
        "query_short_key": .silence,

        "query_registered": .rows(alsoFrom: acceptedHere),
        "query_contacts_only_allowed": .rows(alsoFrom: []),
        "query_contacts_only_not_allowed": .rows(alsoFrom: []),
        "query_two_keys": .rows(alsoFrom: acceptedHere),
        "query_same_key_twice": .rows(alsoFrom: []),
        "query_after_unregister": .rows(alsoFrom: acceptedHere),

        "req_unknown_type": .reports([.unknown], notified: .asRecorded),
        "req_mixed": .reports([nil, .wrongToken, .unknown, .notRegistered, nil], notified: .asRecorded),
        "req_duplicate": .reports([nil], notified: .asRecorded),
        "req_same_message_id_other_key": .reports([nil], notified: .nothing),
        "req_gorush_500": .reports([.internalError], notified: .later(like: "req_message_apn")),
        "req_gorush_down": .reports([.internalError], notified: .later(like: "req_message_firebase")),
        "req_gorush_down_2": .reports([nil], notified: .nothing),
    ]
}
