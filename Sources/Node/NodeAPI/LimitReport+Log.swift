package import Core
package import NodeMetrics
package import RateLimits

extension LimitReport {
    /// - Parameters:
    ///   - now: the time, for the daily names.
    package init(_ limits: RateLimits, hasher: PayerHasher, at now: Timestamp) {
        let log = limits.refusals
        self.init(
            refusals: log.totals.map { key, total in
                Refusals(
                    limit: key.limit.label.rawValue, standing: StandingLabel(key.standing).rawValue, total: total,
                    lastMinute: log.lastMinute[key] ?? 0)
            }.sorted { ($0.lastMinute, $0.total, $0.limit, $0.standing) > ($1.lastMinute, $1.total, $1.limit, $1.standing) },
            payers: Self.payers(of: log, hasher: hasher, at: now),
            attack: log.attack.map { key, count in
                "\(key.limit.rawValue): \(count) by payers of the standing \(StandingLabel(key.standing).rawValue) refused in the last minute"
            })
    }

    /// The greatest payers, largest first.
    package static func payers(of log: RefusalLog, hasher: PayerHasher, at now: Timestamp) -> [Payer] {
        log.heaviest().map {
            Payer(
                name: hasher.dailyName(of: $0.payer, at: now), kind: "\($0.payer.kind)",
                standing: StandingLabel($0.standing).rawValue, work: $0.work)
        }
    }
}

extension StandingLabel {
    package init(_ standing: Standing) {
        self =
            switch standing {
            case .stranger: .stranger
            case .familiar: .familiar
            case .known: .known
            }
    }
}

extension RateLimitTable.Refusal {
    package var label: LimitLabel {
        switch self {
        case .messagesBySender: .messagesBySender
        case .registrationsBySender: .registrationsBySender
        case .queriesBySender: .queriesBySender
        case .requestsBySender: .requestsBySender
        case .queriesByTarget: .queriesByTarget
        case .notificationsByTarget: .notificationsByTarget
        case .newRegistrations: .newRegistrations
        case .registrations: .registrations
        case .queries: .queries
        case .requests: .requests
        case .answerKiBByTarget: .answerKiBByTarget
        case .answerKiB: .answerKiB
        case .wholeAnswersByTarget: .wholeAnswersByTarget
        case .notifications: .notifications
        case .installationsByKey: .installationsByKey
        case .registrationCount: .registrationCount
        case .webPushDevicesByOrigin: .webPushDevicesByOrigin
        case .storeMiB: .storeMiB
        case .denied: .denied
        case .topicKeys: .topicKeys
        case .segments: .segments
        case .httpRequests: .httpRequests
        case .accountPlaces: .accountPlaces
        }
    }
}
