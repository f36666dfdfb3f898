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
    package static let registrationStored = Counter(
        "registration stored", .handled, ProtocolLabel.status, KindLabel.registration, OutcomeLabel.stored)
    package static let registrationEnded = Counter(
        "registration ended", .handled, ProtocolLabel.status, KindLabel.registration, OutcomeLabel.ended)
    package static let registrationRepeated = Counter(
        "registration answered again", .handled, ProtocolLabel.status, KindLabel.registration, OutcomeLabel.repeated)
    package static let registrationMalformed = Counter(
        "registration refused: malformed", .handled, ProtocolLabel.status, KindLabel.registration, OutcomeLabel.refusedMalformed)
    package static let registrationOutdated = Counter(
        "registration refused: version", .handled, ProtocolLabel.status, KindLabel.registration, OutcomeLabel.refusedVersion)
    package static let registrationUnsupported = Counter(
        "registration refused: token type", .handled, ProtocolLabel.status, KindLabel.registration, OutcomeLabel.refusedTokenType)
    package static let registrationLimited = Counter(
        "registration refused: limit", .handled, ProtocolLabel.status, KindLabel.registration, OutcomeLabel.refusedLimit)
    package static let registrationRefused = Counter(
        "registration refused otherwise", .handled, ProtocolLabel.status, KindLabel.registration, OutcomeLabel.refusedOther)
    package static let queryAnswered = Counter("query answered", .handled, ProtocolLabel.status, KindLabel.query, OutcomeLabel.answered)
    package static let queryUnanswered = Counter(
        "query unanswered", .handled, ProtocolLabel.status, KindLabel.query, OutcomeLabel.nothingFound)
    package static let requestTaken = Counter("request taken", .handled, ProtocolLabel.status, KindLabel.request, OutcomeLabel.taken)
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
