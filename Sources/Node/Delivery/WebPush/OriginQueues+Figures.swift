import Core

/// The figures of push services with deliveries, and how long they wait for places.
extension OriginQueues {
    /// How long the service of a part has waited that waits longest for a place.
    func longestWait(of part: OriginPlaces.Part, at now: Timestamp) -> Duration {
        self[part].waitingSince.map { max(.zero, now.since($0)) } ?? .zero
    }

    /// Whether services began to wait for places for long, or no longer wait, since the last call; nil for no change.
    mutating func longWaitChange(now: Timestamp) -> Bool? {
        let longest = max(longestWait(of: .responsive, at: now), longestWait(of: .others, at: now))
        let isLong = longest > (isWaitLong ? .zero : configuration.longWait)
        guard isLong != isWaitLong else { return nil }
        isWaitLong = isLong
        return isLong
    }

    func figures(now: Timestamp) -> WebPushFigures {
        var figures = WebPushFigures(waitingCount: waitingCount)
        figures.responsiveWait = longestWait(of: .responsive, at: now)
        figures.othersWait = longestWait(of: .others, at: now)
        for service in services.values {
            if service.isUnavailable(at: now) {
                figures.unavailableCount += 1
            } else if service.open != nil {
                figures.postingCount += 1
            } else {
                figures.otherCount += 1
            }
        }
        return figures
    }
}

/// The push services with deliveries.
package struct WebPushFigures: Hashable, Sendable {
    package var waitingCount = 0
    package var postingCount = 0
    /// With a breaker that is open, or paused.
    package var unavailableCount = 0
    package var otherCount = 0
    /// The longest wait for a place at present: among services that answer, and among the others.
    package var responsiveWait = Duration.zero
    package var othersWait = Duration.zero
}
