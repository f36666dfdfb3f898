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
        ] + RateLimitTable.Refusal.allCases.compactMap { Counter($0) })
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

extension Counter {
    package static let v01LimitMessagesBySender = Counter(
        "v0.1 limit: messages of a sender", .limited, ProtocolLabel.statusV01, LimitLabel.messagesBySender)
    package static let v01LimitRegistrationsBySender = Counter(
        "v0.1 limit: registrations of a sender", .limited, ProtocolLabel.statusV01, LimitLabel.registrationsBySender)
    package static let v01LimitQueriesBySender = Counter(
        "v0.1 limit: queries of a sender", .limited, ProtocolLabel.statusV01, LimitLabel.queriesBySender)
    package static let v01LimitRequestsBySender = Counter(
        "v0.1 limit: requests of a sender", .limited, ProtocolLabel.statusV01, LimitLabel.requestsBySender)
    package static let v01LimitQueriesByTarget = Counter(
        "v0.1 limit: queries about a registrant", .limited, ProtocolLabel.statusV01, LimitLabel.queriesByTarget)
    package static let v01LimitNotificationsByTarget = Counter(
        "v0.1 limit: notifications for a device", .limited, ProtocolLabel.statusV01, LimitLabel.notificationsByTarget)
    package static let v01LimitNewRegistrations = Counter(
        "v0.1 limit: new registrations", .limited, ProtocolLabel.statusV01, LimitLabel.newRegistrations)
    package static let v01LimitRegistrations = Counter(
        "v0.1 limit: registrations", .limited, ProtocolLabel.statusV01, LimitLabel.registrations)
    package static let v01LimitQueries = Counter("v0.1 limit: queries", .limited, ProtocolLabel.statusV01, LimitLabel.queries)
    package static let v01LimitRequests = Counter("v0.1 limit: requests", .limited, ProtocolLabel.statusV01, LimitLabel.requests)
    package static let v01LimitAnswerKiBByTarget = Counter(
        "v0.1 limit: KiB of answers about a registrant", .limited, ProtocolLabel.statusV01, LimitLabel.answerKiBByTarget)
    package static let v01LimitAnswerKiB = Counter("v0.1 limit: KiB of answers", .limited, ProtocolLabel.statusV01, LimitLabel.answerKiB)
    package static let v01LimitWholeAnswersByTarget = Counter(
        "v0.1 limit: repeated long answers about a registrant", .limited, ProtocolLabel.statusV01, LimitLabel.wholeAnswersByTarget)
    package static let v01LimitNotifications = Counter(
        "v0.1 limit: notifications", .limited, ProtocolLabel.statusV01, LimitLabel.notifications)
    package static let v01LimitTopicKeys = Counter(
        "v0.1 limit: displaced while waiting for a topic key", .limited, ProtocolLabel.statusV01, LimitLabel.topicKeys)
    package static let v01LimitSegments = Counter(
        "v0.1 limit: displaced incomplete messages", .limited, ProtocolLabel.statusV01, LimitLabel.segments)
    package static let v01LimitInstallationsByKey = Counter(
        "v0.1 limit: devices of a record", .limited, ProtocolLabel.statusV01, LimitLabel.installationsByKey)
    package static let v01LimitRegistrationCount = Counter(
        "v0.1 limit: devices that are registered", .limited, ProtocolLabel.statusV01, LimitLabel.registrationCount)
    package static let v01LimitStoreMiB = Counter("v0.1 limit: MiB of the store", .limited, ProtocolLabel.statusV01, LimitLabel.storeMiB)
    package static let v01LimitDenied = Counter(
        "v0.1 limit: key that may not register", .limited, ProtocolLabel.statusV01, LimitLabel.denied)

    /// nil for limits of other protocols.
    init?(_ refusal: RateLimitTable.Refusal) {
        switch refusal {
        case .messagesBySender: self = .v01LimitMessagesBySender
        case .registrationsBySender: self = .v01LimitRegistrationsBySender
        case .queriesBySender: self = .v01LimitQueriesBySender
        case .requestsBySender: self = .v01LimitRequestsBySender
        case .queriesByTarget: self = .v01LimitQueriesByTarget
        case .notificationsByTarget: self = .v01LimitNotificationsByTarget
        case .newRegistrations: self = .v01LimitNewRegistrations
        case .registrations: self = .v01LimitRegistrations
        case .queries: self = .v01LimitQueries
        case .requests: self = .v01LimitRequests
        case .answerKiBByTarget: self = .v01LimitAnswerKiBByTarget
        case .answerKiB: self = .v01LimitAnswerKiB
        case .wholeAnswersByTarget: self = .v01LimitWholeAnswersByTarget
        case .notifications: self = .v01LimitNotifications
        case .topicKeys: self = .v01LimitTopicKeys
        case .segments: self = .v01LimitSegments
        case .installationsByKey: self = .v01LimitInstallationsByKey
        case .registrationCount: self = .v01LimitRegistrationCount
        case .storeMiB: self = .v01LimitStoreMiB
        case .denied: self = .v01LimitDenied
        case .httpRequests, .accountPlaces, .webPushDevicesByOrigin: return nil
        }
    }
}
