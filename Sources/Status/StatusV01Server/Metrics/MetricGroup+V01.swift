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
    package static let v01Stored = handled("v0.1: registration stored", .statusV01, .registration, .stored)
    package static let v01Ended = handled("v0.1: registration ended", .statusV01, .registration, .ended)
    package static let v01Repeated = handled("v0.1: registration answered again", .statusV01, .registration, .repeated)
    package static let v01Malformed = handled("v0.1: registration refused: malformed", .statusV01, .registration, .refusedMalformed)
    package static let v01Outdated = handled("v0.1: registration refused: version", .statusV01, .registration, .refusedVersion)
    package static let v01Unsupported = handled("v0.1: registration refused: token type", .statusV01, .registration, .refusedTokenType)
    package static let v01OverLimit = handled("v0.1: registration refused: limit", .statusV01, .registration, .refusedLimit)
    package static let v01Refused = handled("v0.1: registration refused otherwise", .statusV01, .registration, .refusedOther)
    package static let v01QueryAnswered = handled("v0.1: query answered", .statusV01, .query, .answered)
    package static let v01QueryUnanswered = handled("v0.1: query unanswered", .statusV01, .query, .nothingFound)
    package static let v01RequestTaken = handled("v0.1: request taken", .statusV01, .request, .taken)
    package static let v01Unacknowledged = Counter("v0.1: request without a usable ack_key", .unacknowledgedRequests)
}

extension LimitCounters {
    package static let statusV01 = LimitCounters(
        "v0.1 limit", .statusV01,
        RateLimitTable.Refusal.allCases.filter { ![.webPushDevicesByOrigin, .httpRequests, .accountPlaces].contains($0) },
        words: [.installationsByKey: "devices of a record", .registrationCount: "devices that are registered"])
}
