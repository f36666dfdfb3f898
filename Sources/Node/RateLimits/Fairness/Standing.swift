package import Core

/// How much a payer's existence has cost its author. The share of a resource depends on it.
public enum Standing: Int, CaseIterable, Comparable, Sendable {
    /// New, at no cost.
    case stranger
    /// An HTTP source, or a payer first seen over a day ago. Its share is capped: 250 keys a second for a day are 21 million.
    case familiar
    /// A push service accepted a notification for its device token, or a storage server accepted its signature.
    case known

    public static func < (left: Standing, right: Standing) -> Bool { left.rawValue < right.rawValue }
}

/// The shares of a resource that are guaranteed to each standing. The remainder, and shares that are not in use, are open to all.
package struct StandingShares: Hashable, Sendable {
    /// In 1/256 of the resource. The sum is at most 256.
    private let parts: (stranger: Int, familiar: Int, known: Int)

    /// - Precondition: the sum of the parts is at most 256.
    package init(stranger: Int, familiar: Int, known: Int) {
        precondition(stranger >= 0 && familiar >= 0 && known >= 0 && stranger + familiar + known <= 256)
        parts = (stranger, familiar, known)
    }

    /// Half for the known, a quarter for strangers, an eighth for the familiar.
    package static let standard = StandingShares(stranger: 64, familiar: 32, known: 128)

    private func part(_ standing: Standing) -> Int {
        switch standing {
        case .stranger: parts.stranger
        case .familiar: parts.familiar
        case .known: parts.known
        }
    }

    /// The guaranteed amount of a resource.
    package func guarantee(of standing: Standing, in capacity: Int) -> Int {
        Int(capacity.multipliedFullWidth(by: part(standing)).low / 256)
    }

    /// The weight in turns; at least 1.
    func weight(_ standing: Standing) -> Int { max(1, part(standing)) }

    package static func == (left: StandingShares, right: StandingShares) -> Bool { left.parts == right.parts }

    package func hash(into hasher: inout Hasher) {
        for standing in Standing.allCases { hasher.combine(part(standing)) }
    }
}

/// The evidence for payers' standing. Bounded; time is an input.
package struct StandingBook: Sendable {
    /// What cannot be made for nothing.
    package enum Evidence: Sendable, CaseIterable {
        /// A push service accepted a notification for the device token.
        case pushService
        /// A storage server accepted a signature of the account.
        case storageServer
        /// The payer is an HTTP source: an address by its network, seen directly or through a trusted proxy.
        case source

        var standing: Standing {
            switch self {
            case .pushService, .storageServer: .known
            case .source: .familiar
            }
        }
    }

    /// Evidence is valid for this time.
    package static let lifetime = Duration.seconds(60 * 24 * 3600)
    /// The age from which a payer is ``Standing/familiar``.
    package static let familiarAge = Duration.seconds(24 * 3600)

    private var proven: GenerationalCache<Payer, (standing: Standing, since: Timestamp)>
    private var firstSeen: GenerationalCache<Payer, Timestamp>

    /// - Parameter capacity: payers with evidence that are surely remembered. New payers have memory of their own, so a flood of them displaces no
    ///   evidence.
    package init(capacity: Int = 200_000) {
        proven = GenerationalCache(capacity: capacity)
        firstSeen = GenerationalCache(capacity: capacity)
    }

    package mutating func record(_ evidence: Evidence, of payer: Payer, at now: Timestamp) {
        let old = proven.value(of: payer)?.standing ?? .stranger
        proven.set((max(old, evidence.standing), now), of: payer)
    }

    /// Ends the standing of a payer, as when a push service reports its device token as invalid.
    package mutating func revoke(_ payer: Payer) {
        proven.remove(payer)
    }

    /// The standing of a payer. Records when it was first seen.
    package mutating func standing(of payer: Payer, at now: Timestamp) -> Standing {
        if let (standing, since) = proven.value(of: payer), now.since(since) <= Self.lifetime { return standing }
        guard let seen = firstSeen.refreshedValue(of: payer) else {
            firstSeen.set(now, of: payer)
            return .stranger
        }
        return now.since(seen) >= Self.familiarAge ? .familiar : .stranger
    }
}
