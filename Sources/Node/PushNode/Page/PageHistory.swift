package import NodeMetrics
package import Core

/// The counts of the last 15 minutes, as points in time.
package struct PageHistory {
    package static let limit = 180
    private static let shortestStep = Duration.seconds(4)

    package struct Point {
        package let time: Timestamp
        /// Since the start.
        package let counts: [Counter: Int]
        /// Since the start, by ``KindLabel/place``.
        package let valid: [Int]
        /// Notifications in the outbox.
        package let waiting: Int
        /// Since the start, cumulative by the bounds of ``Metric/sinceReceipt``.
        package let answerTimes: [Int64]

        package func count(_ counter: Counter) -> Int { counts[counter] ?? 0 }
        package func count(_ counters: [Counter]) -> Int { counters.reduce(0) { $0 + count($1) } }
    }

    /// Oldest first.
    package private(set) var points: [Point] = []

    package mutating func add(_ point: Point) {
        if points.count >= Self.limit { points.removeFirst() }
        points.append(point)
    }

    /// Appends the current point. Replaces a very recent one, because a rate over so short a time would be meaningless.
    package mutating func extend(to point: Point) {
        if points.count > 1, let last = points.last, point.time.since(last.time) < Self.shortestStep { points.removeLast() }
        add(point)
    }

    /// Rates per second between consecutive points.
    ///
    /// - Parameter figure: a count since the start.
    package func rates(_ figure: (Point) -> Int) -> [Double] {
        zip(points, points.dropFirst()).map { old, new in
            let seconds = new.time.since(old.time).seconds
            // The clock was set back.
            return seconds > 0 ? Double(max(0, figure(new) - figure(old))) / seconds : 0
        }
    }
}
