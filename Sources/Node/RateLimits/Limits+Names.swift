/// Limits by their option names: `queries-by-target=100/s burst 1000`, `installations-by-key=100`, `requests=off`.
extension Limits {
    package struct Problem: Error, Equatable, Sendable {
        package let message: String
    }

    /// All limits with their values, in the format of ``set(_:)``.
    package var settings: [(name: String, value: String)] {
        Self.rates.map { ($0.limit.optionName, self[keyPath: $0.path].map(\.description) ?? "off") }
            + Self.counts.map { ($0.limit.optionName, self[keyPath: $0.path].map(String.init) ?? "off") }
    }

    /// - Parameter text: `name=value`.
    package mutating func set(_ text: String) throws(Problem) {
        guard let mark = text.firstIndex(of: "=") else { throw Problem(message: "\(text) is not of the form NAME=VALUE") }
        let (name, value) = (String(text[..<mark]), String(text[text.index(after: mark)...]))
        if let path = Self.rates.first(where: { $0.limit.optionName == name })?.path {
            guard value != "off" else { return self[keyPath: path] = nil }
            do throws(RateLimit.Problem) {
                self[keyPath: path] = try RateLimit(parsing: value)
            } catch {
                throw Problem(message: "\(name)=\(value) \(Self.explain(error))")
            }
        } else if let path = Self.counts.first(where: { $0.limit.optionName == name })?.path {
            guard value != "off" else { return self[keyPath: path] = nil }
            guard let count = Int(value), (1...1_000_000_000).contains(count) else {
                throw Problem(message: "\(name)=\(value) is not a count: give a number from 1 to 1000000000, or off")
            }
            self[keyPath: path] = count
        } else {
            throw Problem(message: "there is no limit \(name): there are \(settings.map(\.name).joined(separator: ", "))")
        }
    }

    /// A limit that can't be reached, because another one applies first.
    package struct Conflict: Hashable, Sendable {
        /// The names of the limit and of the one that applies first.
        package let name: String
        package let other: String
        /// Names both with their values, and states the remedy.
        package let message: String

        fileprivate init<Limit>(_ part: RateLimitTable.Refusal, _ inner: Limit, exceeds whole: RateLimitTable.Refusal, _ outer: Limit) {
            (name, other) = (part.optionName, whole.optionName)
            message = "\(name) (\(inner)) never applies, as \(other) (\(outer)) is lower: lower the first or raise the second"
        }
    }

    /// Limits with those that include them: of one sender, registrant or device, and of all.
    private static let inclusions: [(part: RateLimitTable.Refusal, whole: RateLimitTable.Refusal)] = [
        (.registrationsBySender, .messagesBySender), (.queriesBySender, .messagesBySender), (.requestsBySender, .messagesBySender),
        (.registrationsBySender, .registrations), (.queriesBySender, .queries), (.requestsBySender, .requests),
        (.queriesByTarget, .queries), (.notificationsByTarget, .notifications), (.answerKiBByTarget, .answerKiB),
    ]

    /// The limits that can't work: a part that may be larger than the whole. Such a limit never applies, and one sender can use up the whole.
    package var conflicts: [Conflict] {
        let rates = Dictionary(uniqueKeysWithValues: Self.rates.compactMap { rate in self[keyPath: rate.path].map { (rate.limit, $0) } })
        let ofRates = Self.inclusions.compactMap { part, whole -> Conflict? in
            guard let inner = rates[part], let outer = rates[whole], inner.exceeds(outer) else { return nil }
            return Conflict(part, inner, exceeds: whole, outer)
        }
        let parts: [(RateLimitTable.Refusal, Int?)] = [
            (.installationsByKey, installationsByKey), (.webPushDevicesByOrigin, webPushDevicesByOrigin),
        ]
        let ofCounts = parts.compactMap { part, inner -> Conflict? in
            guard let inner, let outer = registrationCount, inner > outer else { return nil }
            return Conflict(part, inner, exceeds: .registrationCount, outer)
        }
        return ofRates + ofCounts
    }

    private static func explain(_ problem: RateLimit.Problem) -> String {
        switch problem {
        case .malformed: "is not a rate: write it like 10/s, 600/min burst 100, or off"
        case .burstTooLarge(let maximum):
            "can't be counted: the burst takes over 100 years to refill: give a burst of at most \(maximum), or a higher rate"
        }
    }
}
