package import Core
import NodeMetrics
package import RateLimits

extension LimitReport {
    /// - Parameter now: the time, for the daily names.
    package init(_ limits: RateLimits, hasher: PayerHasher, at now: Timestamp) {
        let log = limits.refusals
        self.init(
            refusals: log.totals.map { key, total in
                Refusals(
                    limit: key.limit.labelValue, standing: key.standing.labelValue, total: total,
                    lastMinute: log.lastMinute[key] ?? 0)
            }.sorted { ($0.lastMinute, $0.total, $0.limit, $0.standing) > ($1.lastMinute, $1.total, $1.limit, $1.standing) },
            payers: Self.payers(of: log, hasher: hasher, at: now),
            attack: log.attack.map { key, count in
                "\(key.limit.rawValue): \(count) by payers of the standing \(key.standing.labelValue) refused in the last minute"
            })
    }

    /// The greatest payers, largest first.
    package static func payers(of log: RefusalLog, hasher: PayerHasher, at now: Timestamp) -> [Payer] {
        log.heaviest().map {
            Payer(
                name: hasher.dailyName(of: $0.payer, at: now), kind: "\($0.payer.kind)",
                standing: $0.standing.labelValue, work: $0.work)
        }
    }
}
