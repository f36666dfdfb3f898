/// A `sig_ts` that was more than 60 s ahead of this node's clock on arrival.
package struct AheadTime: Hashable, Sendable {
    /// Raw values are stored and must not change.
    package enum Kind: Int64, Sendable {
        case subscription = 1
        case unsubscription = 2
    }

    package let kind: Kind
    /// Unix seconds.
    package let signedAt: Int64
    /// When it first arrived, in Unix seconds. Requests with such a `sig_ts` are ordered by this time.
    package let arrivedAt: Int64

    package init(_ kind: Kind, signedAt: Int64, arrivedAt: Int64) {
        (self.kind, self.signedAt, self.arrivedAt) = (kind, signedAt, arrivedAt)
    }

    package static func isAhead(_ signedAt: Int64, at now: Int64) -> Bool { signedAt > now + SessionTimes.clockTolerance }
}

/// The `sig_ts` values of one subscription name that were ahead on arrival, kept until they are 14 days old.
///
/// A device that corrects its clock continues with lower `sig_ts`, so its requests are ordered by arrival instead. A `sig_ts` in this list that is no
/// longer the stored one is a replay.
package struct AheadTimes: Hashable, Sendable {
    /// Maximum number of times per name. Beyond it the lowest, which expire first, are dropped: see ``mayBeDropped(_:)``.
    package static let countLimit = 32

    private var times: [AheadTime]
    /// Not stored yet.
    package private(set) var added: [AheadTime] = []
    /// Stored times below this one are to be deleted; nil when there are none.
    package private(set) var lowestKept: Int64?

    package init(_ stored: [AheadTime] = []) {
        times = stored
    }

    package func contains(_ kind: AheadTime.Kind, _ signedAt: Int64) -> Bool {
        times.contains { $0.kind == kind && $0.signedAt == signedAt }
    }

    /// Whether a time that is not in the list may have been dropped from it. A full list holds all times from its lowest one on; those below may have
    /// been used.
    package func mayBeDropped(_ signedAt: Int64) -> Bool {
        times.count >= Self.countLimit && times.allSatisfy { signedAt < $0.signedAt }
    }

    /// The stored subscription with its arrival time, which determines its order.
    ///
    /// Earlier releases did not record the arrival. If `sig_ts` is still far ahead, `now` is used: the arrival was earlier. If it is only a little
    /// ahead, this node's clock may have been set back since, and the order must not change.
    package func stored(signedAt: Int64, at now: Int64) -> StoredSubscription {
        let known = times.first { $0.kind == .subscription && $0.signedAt == signedAt }?.arrivedAt
        let isOfEarlierRelease = signedAt > now + SessionTimes.clockStepTolerance
        return StoredSubscription(signedAt: signedAt, arrivedAt: known ?? (isOfEarlierRelease ? now : nil))
    }

    /// Records a `sig_ts` if it is ahead and not recorded yet.
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
