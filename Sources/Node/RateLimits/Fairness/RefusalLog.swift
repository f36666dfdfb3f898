package import Core

/// Counts refused and displaced work by limit and standing, and the payers that cause the most work, in bounded memory. Time is an input.
package struct RefusalLog: Sendable {
    package struct Key: Hashable, Sendable {
        package let limit: RateLimitTable.Refusal
        package let standing: Standing
    }

    package struct Heavy: Hashable, Sendable {
        package let payer: Payer
        package let standing: Standing
        /// Pieces of work, admitted and refused; an estimate from above.
        package let work: Int
    }

    /// Refusals in a minute from which the node is considered under attack: ten a second.
    package static let attackThreshold = 600
    private static let sketchLimit = 64

    package private(set) var totals: [Key: Int] = [:]
    package private(set) var lastMinute: [Key: Int] = [:]
    private var thisMinute: [Key: Int] = [:]
    /// The space-saving sketch: a payer that is not listed takes the place, and the count, of the least.
    private var sketch: [Payer: (standing: Standing, work: Int)] = [:]
    private var day: Int64 = 0

    package init() {}

    package mutating func refused(_ limit: RateLimitTable.Refusal, _ standing: Standing, count: Int = 1) {
        let key = Key(limit: limit, standing: standing)
        totals[key, default: 0] += count
        thisMinute[key, default: 0] += count
    }

    package mutating func worked(for charge: Charge) {
        guard charge != .unattributed else { return }
        if let work = sketch[charge.payer]?.work {
            sketch[charge.payer] = (charge.standing, work + 1)
        } else if sketch.count < Self.sketchLimit {
            sketch[charge.payer] = (charge.standing, 1)
        } else if let least = sketch.min(by: { $0.value.work < $1.value.work }) {
            sketch[least.key] = nil
            sketch[charge.payer] = (charge.standing, least.value.work + 1)
        }
    }

    /// Called once a minute. Payers are forgotten when the day changes.
    package mutating func endMinute(at now: Timestamp) {
        (lastMinute, thisMinute) = (thisMinute, [:])
        let today = Self.day(of: now)
        if day != today { (day, sketch) = (today, [:]) }
    }

    /// The greatest payers of the day, largest first.
    package func heaviest(_ limit: Int = 10) -> [Heavy] {
        sketch.map { Heavy(payer: $0.key, standing: $0.value.standing, work: $0.value.work) }
            .sorted { ($0.work, $0.payer.digest.low) > ($1.work, $1.payer.digest.low) }.prefix(limit).map(\.self)
    }

    /// The limit and standing with most refusals in the last minute, if the node is under attack.
    package var attack: (key: Key, count: Int)? {
        guard lastMinute.values.reduce(0, +) >= Self.attackThreshold else { return nil }
        return lastMinute.max { ($0.value, $0.key.limit.rawValue) < ($1.value, $1.key.limit.rawValue) }.map { ($0.key, $0.value) }
    }

    package static func day(of time: Timestamp) -> Int64 { time.rawValue / (24 * 3600 * 1_000_000_000) }
}

extension PayerHasher {
    /// A name of a payer for operators, 8 hexadecimal digits, that differs from day to day and discloses nothing about the payer.
    package func dailyName(of payer: Payer, at now: Timestamp) -> String {
        let day = RefusalLog.day(of: now)
        let named = self.payer(payer.kind, payer.bytes + (0..<8).map { UInt8(truncatingIfNeeded: day >> (8 * $0)) })
        let text = String(named.digest.high >> 32, radix: 16)
        return String(repeating: "0", count: 8 - text.count) + text
    }
}
