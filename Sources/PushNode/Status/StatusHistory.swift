import NodeMetrics
import Waku

/// What was counted in the last quarter of an hour, point by point.
struct StatusHistory {
    static let limit = 180
    private static let shortestStep = Duration.seconds(4)

    struct Point {
        let time: Timestamp
        /// Since the start.
        let counts: [Counter: Int]
        /// Since the start, by ``KindLabel/place``.
        let valid: [Int]
        /// Notifications in the outbox.
        let waiting: Int
        /// Since the start, by the upper ends of ``Metric/sinceReceipt``, cumulated.
        let answerTimes: [Int64]

        func count(_ counter: Counter) -> Int { counts[counter] ?? 0 }
        func count(_ counters: [Counter]) -> Int { counters.reduce(0) { $0 + count($1) } }
    }

    /// Oldest first.
    private(set) var points: [Point] = []

    mutating func add(_ point: Point) {
        if points.count >= Self.limit { points.removeFirst() }
        points.append(point)
    }

    /// Goes on to the present. A point that is but a moment old gives way: a rate over so short a time would say nothing.
    mutating func extend(to point: Point) {
        if points.count > 1, let last = points.last, point.time.since(last.time) < Self.shortestStep { points.removeLast() }
        add(point)
    }

    /// A second's worth of what grew between two points, for each but the first.
    ///
    /// - Parameter figure: of what was counted since the start.
    func rates(_ figure: (Point) -> Int) -> [Double] {
        zip(points, points.dropFirst()).map { old, new in
            let seconds = new.time.since(old.time).seconds
            // A clock that was set back tells nothing.
            return seconds > 0 ? Double(max(0, figure(new) - figure(old))) / seconds : 0
        }
    }
}

extension Duration {
    /// `45 s`, `3 min`, `2 h 5 min`, `4 d 3 h`.
    var inWords: String {
        let seconds = max(0, components.seconds)
        switch seconds {
        case ..<120: return "\(seconds) s"
        case ..<7200: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        default: return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
        }
    }
}
