/// A `sig_ts` that was more than 60 s ahead of our clock when it came.
package struct AheadTime: Hashable, Sendable {
    /// In stored rows: never changed.
    package enum Kind: Int64, Sendable {
        case subscription = 1
        case unsubscription = 2
    }

    package let kind: Kind
    /// Unix seconds.
    package let signedAt: Int64
    /// When it came first, Unix seconds: its place in the order.
    package let arrivedAt: Int64

    package init(_ kind: Kind, signedAt: Int64, arrivedAt: Int64) {
        (self.kind, self.signedAt, self.arrivedAt) = (kind, signedAt, arrivedAt)
    }

    package static func isAhead(_ signedAt: Int64, at now: Int64) -> Bool { signedAt > now + SessionTimes.clockTolerance }
}

/// Those of one name, which are kept until they are 14 days old. They would win over every `sig_ts` of a clock that was corrected, so requests are
/// ordered by their arrival, and such a `sig_ts` that is in force no more is a replay.
package struct AheadTimes: Hashable, Sendable {
    /// A device that sends more loses the lowest: they expire first. Bounds the rows of a name.
    package static let countLimit = 32

    private var times: [AheadTime]
    /// Not stored yet.
    package private(set) var added: [AheadTime] = []
    /// Stored times below this are to be removed; nil for none.
    package private(set) var lowestKept: Int64?

    package init(_ stored: [AheadTime] = []) {
        times = stored
    }

    package func contains(_ kind: AheadTime.Kind, _ signedAt: Int64) -> Bool {
        times.contains { $0.kind == kind && $0.signedAt == signedAt }
    }

    /// A subscription in force, with its place in the order.
    ///
    /// An earlier release, or another node of one, did not note when it came. If it is still ahead it came before now, which is all that is
    /// known.
    package func stored(signedAt: Int64, at now: Int64) -> StoredSubscription {
        let known = times.first { $0.kind == .subscription && $0.signedAt == signedAt }?.arrivedAt
        return StoredSubscription(signedAt: signedAt, arrivedAt: known ?? (AheadTime.isAhead(signedAt, at: now) ? now : nil))
    }

    /// Notes a `sig_ts` if it is ahead, unless it is noted already.
    package mutating func note(_ kind: AheadTime.Kind, _ signedAt: Int64, at now: Int64) {
        guard AheadTime.isAhead(signedAt, at: now), !contains(kind, signedAt) else { return }
        let time = AheadTime(kind, signedAt: signedAt, arrivedAt: now)
        added.append(time)
        times.append(time)
        guard times.count > Self.countLimit else { return }
        let lowest = times.map(\.signedAt).sorted(by: >)[Self.countLimit - 1]
        lowestKept = lowest
        times.removeAll { $0.signedAt < lowest }
        added.removeAll { $0.signedAt < lowest }
    }
}
