package import RateLimits

/// The kind of a message.
public enum KindLabel: String, MetricLabel {
    /// The name of the label in metrics.
    public static let labelName = "kind"
    case registration, query, request
}

/// A stage of processing: see ``Metric/sinceReceipt``.
package enum StageLabel: Int, MetricLabel {
    package static let labelName = "stage"
    package var labelValue: String { "\(self)" }
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

extension RateLimitTable.Refusal: MetricLabel {
    package static let labelName = "limit"
    package var labelValue: String { label }
}

/// The standing of the payer of refused work: see the article on limits.
extension Standing: MetricLabel {
    package static let labelName = "standing"
    package var labelValue: String { "\(self)" }
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
