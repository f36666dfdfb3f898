package import Core

/// Messages ordered by the time of their next check, with a resolution of 50 ms: messages due together are read from the database together.
package struct DueMessages: Sendable {
    /// The number of 50 ms intervals since the clock's epoch.
    package typealias Tick = Int64

    private static let intervalMilliseconds: Int64 = 50
    private var keys: [Tick: [MessageKey]] = [:]
    private var earliest: Tick?

    /// The time of the next check.
    package var next: Instant? { earliest.map { Instant(sinceEpoch: .milliseconds($0 * Self.intervalMilliseconds)) } }

    /// - Returns: the first tick at or after `time`. An older entry of the same message is void.
    package mutating func add(_ key: MessageKey, at time: Instant) -> Tick {
        let (seconds, attoseconds) = time.sinceEpoch.components
        let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000
        let tick = (milliseconds + Self.intervalMilliseconds - 1) / Self.intervalMilliseconds
        keys[tick, default: []].append(key)
        earliest = min(earliest ?? tick, tick)
        return tick
    }

    /// Removes and returns the messages that are due.
    package mutating func popDue(at now: Instant) -> [(key: MessageKey, tick: Tick)] {
        var due: [(key: MessageKey, tick: Tick)] = []
        while let tick = earliest, let time = next, time <= now {
            due += (keys.removeValue(forKey: tick) ?? []).map { ($0, tick) }
            earliest = keys.keys.min()
        }
        return due
    }
}
