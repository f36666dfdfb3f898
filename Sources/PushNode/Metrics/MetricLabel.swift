/// A label of a metric, and all the values that it can ever have. Nothing else gets into a label: no key, no token, no text of anybody's.
public protocol MetricLabel: CaseIterable, RawRepresentable<String>, Sendable {
    static var labelName: String { get }
}

/// What a message is about.
public enum KindLabel: String, MetricLabel {
    public static let labelName = "kind"
    case registration, query, request
}

/// How far a message came: see ``Metric/sinceReceipt``.
public enum StageLabel: String, MetricLabel {
    public static let labelName = "stage"
    case received, valid, durable, accepted, answered
}

/// Where a message ended.
public enum LossStageLabel: String, MetricLabel {
    public static let labelName = "stage"
    case opening, reading, handling
}

public enum LossReasonLabel: String, MetricLabel {
    public static let labelName = "reason"
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

/// One of PushServer's limits.
public enum LimitLabel: String, MetricLabel {
    public static let labelName = "limit"
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
    case installationsByKey = "installations_by_key"
    case registrationCount = "registration_count"
    case unwelcome
}

/// How a valid message ended.
public enum OutcomeLabel: String, MetricLabel {
    public static let labelName = "outcome"
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

/// What a request's asker is told of one device.
public enum ReportLabel: String, MetricLabel {
    public static let labelName = "result"
    case success
    case unknownType = "unknown_type"
    case wrongToken = "wrong_token"
    case internalError = "internal_error"
    case notRegistered = "not_registered"
}

public enum NotificationEndLabel: String, MetricLabel {
    public static let labelName = "outcome"
    case accepted, refused, expired, evicted, unreadable, unroutable, dropped
}

/// A gorush, by its place in the configuration.
public enum EndpointLabel: String, MetricLabel {
    public static let labelName = "endpoint"
    case first = "1"
    case second = "2"
    case third = "3"
    case fourth = "4"
    case fifth = "5"
    case sixth = "6"
    case seventh = "7"
    case eighth = "8"
}

public enum PostClassLabel: String, MetricLabel {
    public static let labelName = "class"
    case accepted, refused, failed, misconfigured
}

/// A status of HTTP that gorush, or what stands before it, may answer with.
public enum StatusLabel: String, MetricLabel {
    public static let labelName = "status"
    case none
    case ok = "200"
    case created = "201"
    case taken = "202"
    case noContent = "204"
    case movedPermanently = "301"
    case found = "302"
    case temporaryRedirect = "307"
    case permanentRedirect = "308"
    case badRequest = "400"
    case unauthorized = "401"
    case forbidden = "403"
    case notFound = "404"
    case methodNotAllowed = "405"
    case proxyAuthenticationRequired = "407"
    case requestTimeout = "408"
    case gone = "410"
    case contentTooLarge = "413"
    case unprocessable = "422"
    case tooEarly = "425"
    case tooManyRequests = "429"
    case unavailableForLegalReasons = "451"
    case internalServerError = "500"
    case notImplemented = "501"
    case badGateway = "502"
    case serviceUnavailable = "503"
    case gatewayTimeout = "504"
    case networkAuthenticationRequired = "511"
    case other

    init(_ status: Int?) {
        self = status.map { StatusLabel(rawValue: "\($0)") ?? .other } ?? .none
    }
}

public enum ConfirmationLabel: String, MetricLabel {
    public static let labelName = "result"
    case confirmed, unconfirmed, unchecked
}

public enum TokenFailureLabel: String, MetricLabel {
    public static let labelName = "verdict"
    case dead, doubtful
    case operatorsMistake = "operators_mistake"
    case other
}

/// Why a failure was not held against its token.
public enum SetAsideLabel: String, MetricLabel {
    public static let labelName = "reason"
    case unmatched
    case heldOff = "held_off"
    case stale, repeated, lost
}

public enum RemovalLabel: String, MetricLabel {
    public static let labelName = "reason"
    case dead
    case inDoubt = "in_doubt"
    case expired
}

public enum FeedbackLabel: String, MetricLabel {
    public static let labelName = "result"
    case taken, malformed, forbidden, shed
}

public enum PlatformLabel: String, MetricLabel {
    public static let labelName = "platform"
    case apn, firebase
    /// Of what is no device any more.
    case none
}

public enum RegistrationStateLabel: String, MetricLabel {
    public static let labelName = "state"
    case registered
    case inDoubt = "in_doubt"
    case unregistered
}

public enum BreakerLabel: String, MetricLabel {
    public static let labelName = "state"
    case closed, open
    case halfOpen = "half_open"
}

/// What waits, and where.
public enum QueueLabel: String, MetricLabel {
    public static let labelName = "queue"
    /// Taken and not yet stored, in units of 4 KiB, one for each message at least.
    case work
    /// Queries that wait for the key of their topic, in the same units.
    case topicKeys = "topic_keys"
    /// Registrants whose topic key is to be derived ahead of the first query.
    case topicKeysAhead = "topic_keys_ahead"
    /// Requests that wait for gorush.
    case requests
    /// Answers to be sealed and published.
    case answers
    /// Answers to be looked up in the relay's store.
    case confirmations
    /// What gorush's hook told.
    case feedback
}

/// Who dialled.
public enum DirectionLabel: String, MetricLabel {
    public static let labelName = "direction"
    case inbound, outbound
}

public enum FlowLabel: String, MetricLabel {
    public static let labelName = "direction"
    case received, sent
}

/// What became of a message in gossip.
public enum GossipLabel: String, MetricLabel {
    public static let labelName = "result"
    case accepted, ignored, rejected, duplicate, foreign, overloaded, published, forwarded
}

public enum MisbehaviourLabel: String, MetricLabel {
    public static let labelName = "kind"
    case brokenPromise = "broken_promise"
    case graftFlood = "graft_flood"
    case greyListed = "grey_listed"
}
