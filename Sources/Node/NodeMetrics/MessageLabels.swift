/// The kind of a message.
public enum KindLabel: String, MetricLabel {
    /// The name of the label in metrics.
    public static let labelName = "kind"
    case registration, query, request
}

/// A stage of processing: see ``Metric/sinceReceipt``.
package enum StageLabel: String, MetricLabel {
    package static let labelName = "stage"
    case received, valid, durable, accepted, answered
}

/// The stage at which a message was dropped.
package enum LossStageLabel: String, MetricLabel {
    package static let labelName = "stage"
    case opening, reading, handling
}

package enum LossReasonLabel: String, MetricLabel {
    package static let labelName = "reason"
    case oversized
    case version
    case undecryptable
    case malformedPayload = "malformed_payload"
    case unsigned
    case segment
    case malformedEnvelope = "malformed_envelope"
    case otherKind = "other_kind"
    case empty
    case badSignature = "bad_signature"
    case unsealable
    case malformedMessage = "malformed_message"
    case tooMany = "too_many_entries"
    case tooOld = "too_old"
    case noMessageID = "no_message_id"
    case shedQuery = "shed_query"
    case shedRequest = "shed_request"
    case storeFailed = "store_failed"
    case limited
}

/// One of the limits of the Status rules.
package enum LimitLabel: String, MetricLabel {
    package static let labelName = "limit"
    case messagesBySender = "messages_by_sender"
    case registrationsBySender = "registrations_by_sender"
    case queriesBySender = "queries_by_sender"
    case requestsBySender = "requests_by_sender"
    case queriesByTarget = "queries_by_target"
    case notificationsByTarget = "notifications_by_target"
    case newRegistrations = "new_registrations"
    case registrations
    case queries
    case requests
    case answerKiBByTarget = "answer_kib_by_target"
    case answerKiB = "answer_kib"
    case wholeAnswersByTarget = "whole_answers_by_target"
    case notifications
    case installationsByKey = "installations_by_key"
    case registrationCount = "registration_count"
    case webPushDevicesByOrigin = "web_push_devices_by_origin"
    case storeMiB = "store_mib"
    /// The raw value is an older name that dashboards use.
    case denied = "unwelcome"
    case topicKeys = "topic_keys"
    case segments
    case httpRequests = "http_requests"
    case accountPlaces = "account_places"
}

/// The standing of the payer of refused work: see the article on limits.
package enum StandingLabel: String, MetricLabel {
    package static let labelName = "standing"
    case stranger, familiar, known
}

/// The outcome of a valid message.
package enum OutcomeLabel: String, MetricLabel {
    package static let labelName = "outcome"
    case stored, ended, repeated
    case refusedMalformed = "refused_malformed"
    case refusedVersion = "refused_version"
    case refusedTokenType = "refused_token_type"
    case refusedLimit = "refused_limit"
    case refusedOther = "refused_other"
    case answered
    case nothingFound = "nothing_found"
    case taken
}
