package import Core

/// How costly it is to create many payers of this kind. The share of a resource depends on it.
public enum Standing: Int, CaseIterable, Comparable, Sendable {
    /// New, at no cost.
    case stranger
    /// An HTTP source, or a payer that was first seen over a day ago. Its share is small, since waiting is cheap: whoever makes 250
    /// keys a second has 21 million such payers after a day.
    case familiar
    /// A push service accepted a notification for its device token.
    case known

    public static func < (left: Standing, right: Standing) -> Bool { left.rawValue < right.rawValue }
}

extension Standing {
    /// Its guaranteed share of a resource, in 1/256. The remainder, and shares that are not in use, are open to all.
    var share: Int {
        switch self {
        case .stranger: 64
        case .familiar: 32
        case .known: 128
        }
    }

    /// The guaranteed amount of a resource.
    func guarantee(in capacity: Int) -> Int { Int(capacity.multipliedFullWidth(by: share).low / 256) }
}

/// The standing of payers. Bounded; time is an input.
package struct StandingBook: Sendable {
    /// An acceptance is valid for this time.
    package static let lifetime = Duration.seconds(60 * 24 * 3600)
    /// The age from which a payer is ``Standing/familiar``.
    package static let familiarAge = Duration.seconds(24 * 3600)

    private var proven: GenerationalCache<Payer, Timestamp>
    private var firstSeen: GenerationalCache<Payer, Timestamp>

    /// - Parameter capacity: known payers that are surely remembered. New payers have memory of their own, so a flood of them displaces no known one.
    package init(capacity: Int = 200_000) {
        proven = GenerationalCache(capacity: capacity)
        firstSeen = GenerationalCache(capacity: capacity)
    }

    /// Records that a push service accepted a notification for the payer's device token.
    package mutating func accepted(_ payer: Payer, at now: Timestamp) { proven.set(now, of: payer) }

    /// The standing of a payer. Records when it was first seen.
    package mutating func standing(of payer: Payer, at now: Timestamp) -> Standing {
        if let accepted = proven.value(of: payer), now.since(accepted) <= Self.lifetime { return .known }
        guard let seen = firstSeen.refreshedValue(of: payer) else {
            firstSeen.set(now, of: payer)
            return .stranger
        }
        return now.since(seen) >= Self.familiarAge ? .familiar : .stranger
    }
}
