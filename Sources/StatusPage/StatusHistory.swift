package import NodeMetrics
package import Waku

/// What was counted in the last quarter of an hour, point by point.
package struct StatusHistory {
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
        /// Since the start, by the upper ends of ``Metric/sinceReceipt``, cumulated.
        package let answerTimes: [Int64]

        package init(time: Timestamp, counts: [Counter: Int], valid: [Int], waiting: Int, answerTimes: [Int64]) {
            self.time = time
            self.counts = counts
            self.valid = valid
            self.waiting = waiting
            self.answerTimes = answerTimes
        }

        package func count(_ counter: Counter) -> Int { counts[counter] ?? 0 }
        package func count(_ counters: [Counter]) -> Int { counters.reduce(0) { $0 + count($1) } }
    }

    /// Oldest first.
    package private(set) var points: [Point] = []

    package init() {}

    package mutating func add(_ point: Point) {
        if points.count >= Self.limit { points.removeFirst() }
        points.append(point)
    }

    /// Goes on to the present. A point that is but a moment old gives way: a rate over so short a time would say nothing.
    package mutating func extend(to point: Point) {
        if points.count > 1, let last = points.last, point.time.since(last.time) < Self.shortestStep { points.removeLast() }
        add(point)
    }

    /// A second's worth of what grew between two points, for each but the first.
    ///
    /// - Parameter figure: of what was counted since the start.
    package func rates(_ figure: (Point) -> Int) -> [Double] {
        zip(points, points.dropFirst()).map { old, new in
            let seconds = new.time.since(old.time).seconds
            // A clock that was set back tells nothing.
            return seconds > 0 ? Double(max(0, figure(new) - figure(old))) / seconds : 0
        }
    }
}
