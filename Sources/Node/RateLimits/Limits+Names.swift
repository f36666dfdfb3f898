/// Limits by their option names: `queries-by-target=100/s burst 1000`, `installations-by-key=100`, `requests=off`.
extension Limits {
    package struct Problem: Error, Equatable, Sendable {
        package let message: String
    }

    /// The meaning of each limit.
    package static let meanings: [String: String] = [
        "messages-by-sender": "all messages of a key, segments included; checked before most of the processing",
        "registrations-by-sender": "registrations and unregistrations of a key",
        "queries-by-sender": "queries of a key",
        "requests-by-sender": "notification requests of a key",
        "queries-by-target": "queries about a registrant by all senders; above it, the registrant is left out of the answer",
        "notifications-by-target": "notifications for a device by all senders; above it, INTERNAL_ERROR",
        "new-registrations": "registrations of new devices, in total, by standing and device token; above it, INTERNAL_ERROR",
        "registrations": "registrations and unregistrations in total",
        "queries": "queries in total",
        "requests": "requests in total",
        "answer-kib-by-target": "KiB about a registrant in answers to all senders; above it, the registrant is left out of the answer",
        "answer-kib": "KiB of answers to queries in total, by standing and registrant; above it, there is no answer",
        "whole-answers-by-target":
            "answers about a registrant that are over 50 times as large as the queries about it; above it, the registrant is left out of the answer",
        "notifications": "notifications in total, by standing and owner; above it, INTERNAL_ERROR",
        "installations-by-key": "registered devices of a key; above it, INTERNAL_ERROR",
        "registration-count": "registered devices in total; above it, a new device displaces one that no one asked for, or INTERNAL_ERROR",
        "web-push-devices-by-origin": "registered Web Push devices of one push service (origin of the endpoint); above it, INTERNAL_ERROR",
        "store-mib": "MiB of the database on disk, measured once a minute; above it, as for registration-count",
    ]

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
    }

    /// Limits with those that include them: of one sender, registrant or device, and of all.
    private static let inclusions = [
        ("registrations-by-sender", "messages-by-sender"), ("queries-by-sender", "messages-by-sender"),
        ("requests-by-sender", "messages-by-sender"), ("registrations-by-sender", "registrations"), ("queries-by-sender", "queries"),
        ("requests-by-sender", "requests"), ("queries-by-target", "queries"), ("notifications-by-target", "notifications"),
        ("answer-kib-by-target", "answer-kib"),
    ]

    /// The limits that can't work: a part that may be larger than the whole. Such a limit never applies, and one sender can use up the whole.
    package var conflicts: [Conflict] {
        let rates = Dictionary(
            uniqueKeysWithValues: Self.rates.compactMap { rate in self[keyPath: rate.path].map { (rate.limit.optionName, $0) } })
        var conflicts: [Conflict] = []
        for (part, whole) in Self.inclusions {
            guard let inner = rates[part], let outer = rates[whole], inner.exceeds(outer) else { continue }
            conflicts.append(
                Conflict(
                    name: part, other: whole,
                    message: "\(part) (\(inner)) never applies, as \(whole) (\(outer)) is lower: lower the first or raise the second"))
        }
        let parts = [("installations-by-key", installationsByKey), ("web-push-devices-by-origin", webPushDevicesByOrigin)]
        for case (let part, let inner?) in parts {
            guard let outer = registrationCount, inner > outer else { continue }
            conflicts.append(
                Conflict(
                    name: part, other: "registration-count",
                    message: "\(part) (\(inner)) never applies, as registration-count (\(outer)) is lower: "
                        + "lower the first or raise the second"))
        }
        return conflicts
    }

    private static func explain(_ problem: RateLimit.Problem) -> String {
        switch problem {
        case .malformed: "is not a rate: write it like 10/s, 600/min burst 100, or off"
        case .burstTooLarge(let maximum):
            "can't be counted: the burst takes over 100 years to refill: give a burst of at most \(maximum), or a higher rate"
        }
    }
}
