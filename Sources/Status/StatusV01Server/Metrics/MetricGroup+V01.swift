package import NodeAPI
package import NodeMetrics
import RateLimits

extension MetricGroup {
    /// Version 0.1: registrations, queries and requests, including limited ones.
    package static let statusV01 = MetricGroup(
        metrics: [.acknowledgements, .unacknowledgedRequests],
        counters: [
            .v01Stored, .v01Ended, .v01Repeated, .v01Malformed, .v01Outdated, .v01Unsupported, .v01OverLimit, .v01Refused,
            .v01QueryAnswered,
            .v01QueryUnanswered, .v01RequestTaken, .v01Unacknowledged,
        ] + LimitCounters.statusV01.all)
}

extension Metric {
    package static let acknowledgements = Metric(
        "waku_push_v01_acknowledgements_total", AcknowledgementLabel.self, help: "Acknowledgements of version 0.1, by result.")
    package static let unacknowledgedRequests = Metric(
        "waku_push_v01_requests_unacknowledged_total",
        help: "Requests of version 0.1 that were carried out and not acknowledged, because they name no key for that.")
}

/// The result in the acknowledgement of a version 0.1 request.
package enum AcknowledgementLabel: String, MetricLabel {
    package static let labelName = "result"
    case success
    case badToken = "bad_token"
    case internalError = "internal_error"
}

extension Counter {
    package static let v01Stored = Counter(
        "v0.1: registration stored", .handled, ProtocolLabel.statusV01, KindLabel.registration, OutcomeLabel.stored)
    package static let v01Ended = Counter(
        "v0.1: registration ended", .handled, ProtocolLabel.statusV01, KindLabel.registration, OutcomeLabel.ended)
    package static let v01Repeated = Counter(
        "v0.1: registration answered again", .handled, ProtocolLabel.statusV01, KindLabel.registration, OutcomeLabel.repeated)
    package static let v01Malformed = Counter(
        "v0.1: registration refused: malformed", .handled, ProtocolLabel.statusV01, KindLabel.registration, OutcomeLabel.refusedMalformed)
    package static let v01Outdated = Counter(
        "v0.1: registration refused: version", .handled, ProtocolLabel.statusV01, KindLabel.registration, OutcomeLabel.refusedVersion)
    package static let v01Unsupported = Counter(
        "v0.1: registration refused: token type", .handled, ProtocolLabel.statusV01, KindLabel.registration, OutcomeLabel.refusedTokenType)
    package static let v01OverLimit = Counter(
        "v0.1: registration refused: limit", .handled, ProtocolLabel.statusV01, KindLabel.registration, OutcomeLabel.refusedLimit)
    package static let v01Refused = Counter(
        "v0.1: registration refused otherwise", .handled, ProtocolLabel.statusV01, KindLabel.registration, OutcomeLabel.refusedOther)
    package static let v01QueryAnswered = Counter(
        "v0.1: query answered", .handled, ProtocolLabel.statusV01, KindLabel.query, OutcomeLabel.answered)
    package static let v01QueryUnanswered = Counter(
        "v0.1: query unanswered", .handled, ProtocolLabel.statusV01, KindLabel.query, OutcomeLabel.nothingFound)
    package static let v01RequestTaken = Counter(
        "v0.1: request taken", .handled, ProtocolLabel.statusV01, KindLabel.request, OutcomeLabel.taken)
    package static let v01Unacknowledged = Counter("v0.1: request without a usable ack_key", .unacknowledgedRequests)
}

extension LimitCounters {
    package static let statusV01 = LimitCounters(
        "v0.1 limit", .statusV01,
        RateLimitTable.Refusal.allCases.filter { ![.webPushDevicesByOrigin, .httpRequests, .accountPlaces].contains($0) },
        words: [.installationsByKey: "devices of a record", .registrationCount: "devices that are registered"])
}
