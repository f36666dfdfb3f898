package import NodeAPI
package import NodeMetrics
import RateLimits

extension MetricGroup {
    /// The Status push protocol: registrations, queries and requests, including dropped and limited ones.
    package static let status = MetricGroup(
        metrics: [.requestsAnswered, .requestsAnsweredAtOnce, .reports],
        counters: [
            .registrationStored, .registrationEnded, .registrationRepeated, .registrationMalformed, .registrationOutdated,
            .registrationUnsupported, .registrationLimited, .registrationRefused, .queryAnswered, .queryUnanswered, .requestTaken,
            .requestAnswered, .requestWhileOpen,
        ] + LimitCounters.status.all)
}

extension Metric {
    package static let requestsAnswered = Metric("waku_push_requests_answered_total", help: "Requests that were answered.")
    package static let requestsAnsweredAtOnce = Metric(
        "waku_push_requests_answered_without_gorush_total",
        help: "Requests that were answered INTERNAL_ERROR at once, because the circuit breaker was open.")
    package static let reports = Metric(
        "waku_push_reports_total", ReportLabel.self, help: "Reports in answers to requests, one for each device.")
}

extension Counter {
    package static let registrationStored = handled("registration stored", .status, .registration, .stored)
    package static let registrationEnded = handled("registration ended", .status, .registration, .ended)
    package static let registrationRepeated = handled("registration answered again", .status, .registration, .repeated)
    package static let registrationMalformed = handled("registration refused: malformed", .status, .registration, .refusedMalformed)
    package static let registrationOutdated = handled("registration refused: version", .status, .registration, .refusedVersion)
    package static let registrationUnsupported = handled("registration refused: token type", .status, .registration, .refusedTokenType)
    package static let registrationLimited = handled("registration refused: limit", .status, .registration, .refusedLimit)
    package static let registrationRefused = handled("registration refused otherwise", .status, .registration, .refusedOther)
    package static let queryAnswered = handled("query answered", .status, .query, .answered)
    package static let queryUnanswered = handled("query unanswered", .status, .query, .nothingFound)
    package static let requestTaken = handled("request taken", .status, .request, .taken)
    package static let requestAnswered = Counter("request answered", .requestsAnswered)
    package static let requestWhileOpen = Counter("request answered at once: gorush takes no notifications", .requestsAnsweredAtOnce)
}

extension LimitCounters {
    package static let status = LimitCounters(
        "limit", .status, RateLimitTable.Refusal.allCases.filter { $0 != .httpRequests && $0 != .accountPlaces })
}

/// The report for one device.
package enum ReportLabel: String, MetricLabel {
    package static let labelName = "result"
    case success
    case unknownType = "unknown_type"
    case wrongToken = "wrong_token"
    case internalError = "internal_error"
    case notRegistered = "not_registered"
}
