/// The work that the limits of one protocol refuse, for operators: without keys, tokens or addresses.
public struct LimitReport: Codable, Hashable, Sendable {
    /// Refusals of one limit for payers of one standing.
    package struct Refusals: Codable, Hashable, Sendable {
        /// As in the metric `waku_push_refused_total`.
        package let limit: String
        package let standing: String
        /// Since the start of the process.
        package let total: Int
        /// In the last whole minute.
        package let lastMinute: Int

        package init(limit: String, standing: String, total: Int, lastMinute: Int) {
            (self.limit, self.standing, self.total, self.lastMinute) = (limit, standing, total, lastMinute)
        }
    }

    /// A payer that causes much work.
    package struct Payer: Codable, Hashable, Sendable {
        /// A keyed hash that changes daily.
        package let name: String
        package let kind: String
        package let standing: String
        /// Pieces of work of the day, admitted and refused.
        package let work: Int

        package init(name: String, kind: String, standing: String, work: Int) {
            (self.name, self.kind, self.standing, self.work) = (name, kind, standing, work)
        }
    }

    package let refusals: [Refusals]
    /// The ten greatest, largest first.
    package let payers: [Payer]
    /// The cause, if the node is under attack.
    package let attack: String?

    package init(refusals: [Refusals], payers: [Payer], attack: String?) {
        (self.refusals, self.payers, self.attack) = (refusals, payers, attack)
    }
}
