package import NodeMetrics

extension MetricGroup {
    /// The Status push protocol: registrations, queries and requests, including dropped and limited ones.
    package static let status = MetricGroup(
        metrics: [.requestsAnswered, .requestsAnsweredAtOnce, .reports],
        counters: [
            .registrationStored, .registrationEnded, .registrationRepeated, .registrationMalformed, .registrationOutdated,
            .registrationUnsupported, .registrationLimited, .registrationRefused, .queryAnswered, .queryUnanswered, .requestTaken,
            .requestAnswered, .requestWhileOpen, .limitMessagesBySender, .limitRegistrationsBySender, .limitQueriesBySender,
            .limitRequestsBySender,
            .limitQueriesByTarget, .limitNotificationsByTarget, .limitNewRegistrations, .limitRegistrations, .limitQueries, .limitRequests,
            .limitAnswerKiBByTarget, .limitAnswerKiB, .limitWholeAnswersByTarget, .limitNotifications, .limitTopicKeys, .limitSegments,
            .limitInstallationsByKey, .limitRegistrationCount, .limitWebPushDevicesByOrigin, .limitStoreMiB, .limitDenied,
        ])
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
    package static let limitMessagesBySender = Counter(
        "limit: messages of a sender", .limited, ProtocolLabel.status, LimitLabel.messagesBySender)
    package static let limitRegistrationsBySender = Counter(
        "limit: registrations of a sender", .limited, ProtocolLabel.status, LimitLabel.registrationsBySender)
    package static let limitQueriesBySender = Counter(
        "limit: queries of a sender", .limited, ProtocolLabel.status, LimitLabel.queriesBySender)
    package static let limitRequestsBySender = Counter(
        "limit: requests of a sender", .limited, ProtocolLabel.status, LimitLabel.requestsBySender)
    package static let limitQueriesByTarget = Counter(
        "limit: queries about a registrant", .limited, ProtocolLabel.status, LimitLabel.queriesByTarget)
    package static let limitNotificationsByTarget = Counter(
        "limit: notifications for a device", .limited, ProtocolLabel.status, LimitLabel.notificationsByTarget)
    package static let limitNewRegistrations = Counter(
        "limit: new registrations", .limited, ProtocolLabel.status, LimitLabel.newRegistrations)
    package static let limitRegistrations = Counter("limit: registrations", .limited, ProtocolLabel.status, LimitLabel.registrations)
    package static let limitQueries = Counter("limit: queries", .limited, ProtocolLabel.status, LimitLabel.queries)
    package static let limitRequests = Counter("limit: requests", .limited, ProtocolLabel.status, LimitLabel.requests)
    package static let limitAnswerKiBByTarget = Counter(
        "limit: KiB of answers about a registrant", .limited, ProtocolLabel.status, LimitLabel.answerKiBByTarget)
    package static let limitAnswerKiB = Counter("limit: KiB of answers", .limited, ProtocolLabel.status, LimitLabel.answerKiB)
    package static let limitWholeAnswersByTarget = Counter(
        "limit: repeated long answers about a registrant", .limited, ProtocolLabel.status, LimitLabel.wholeAnswersByTarget)
    package static let limitNotifications = Counter("limit: notifications", .limited, ProtocolLabel.status, LimitLabel.notifications)
    package static let limitTopicKeys = Counter(
        "limit: displaced while waiting for a topic key", .limited, ProtocolLabel.status, LimitLabel.topicKeys)
    package static let limitSegments = Counter(
        "limit: displaced incomplete messages", .limited, ProtocolLabel.status, LimitLabel.segments)
    package static let limitInstallationsByKey = Counter(
        "limit: installations of a key", .limited, ProtocolLabel.status, LimitLabel.installationsByKey)
    package static let limitRegistrationCount = Counter(
        "limit: registrations in force", .limited, ProtocolLabel.status, LimitLabel.registrationCount)
    package static let limitWebPushDevicesByOrigin = Counter(
        "limit: Web Push devices of a push service", .limited, ProtocolLabel.status, LimitLabel.webPushDevicesByOrigin)
    package static let limitStoreMiB = Counter("limit: MiB of the store", .limited, ProtocolLabel.status, LimitLabel.storeMiB)
    package static let limitDenied = Counter("limit: key that may not register", .limited, ProtocolLabel.status, LimitLabel.denied)
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
