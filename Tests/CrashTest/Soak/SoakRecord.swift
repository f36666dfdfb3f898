import Foundation

/// The figures of one interval.
struct SoakRecord {
    let time: Duration
    let trouble: String
    /// Resident, in bytes.
    let memory: Int
    let descriptors: Int
    let threads: Int
    /// The size of the database and its log, in bytes.
    let database: Int
    /// Questions and registrations of Status' clients in this interval.
    let asked: Int
    /// Notifications posted to gorush in this interval.
    let posts: Int
    /// The median time of a query.
    let latency: Duration
    let longestLatency: Duration

    static let heading = "    time  trouble          memory  descriptors  threads   database    asked    posted   query, longest"

    var line: String {
        let cells = [
            ("\(time.components.seconds) s", 8), ("  " + trouble.padding(toLength: 14, withPad: " ", startingAt: 0), 16),
            ("\(memory >> 20) MiB", 8), ("\(descriptors)", 13), ("\(threads)", 9), ("\(database >> 20) MiB", 11), ("\(asked)", 9),
            ("\(posts)", 10), ("\(latency.wholeMilliseconds), \(longestLatency.wholeMilliseconds) ms", 17),
        ]
        return cells.map { String(repeating: " ", count: max(0, $0.1 - $0.0.count)) + $0.0 }.joined()
    }

    static func csv(_ records: [SoakRecord]) -> String {
        let head = "seconds,trouble,memory_bytes,descriptors,threads,database_bytes,asked,posted,query_median_ms,query_longest_ms\n"
        return records.reduce(into: head) { text, one in
            let fields: [Any] = [
                one.time.components.seconds, one.trouble, one.memory, one.descriptors, one.threads, one.database, one.asked, one.posts,
                one.latency.wholeMilliseconds, one.longestLatency.wholeMilliseconds,
            ]
            text += fields.map { "\($0)" }.joined(separator: ",") + "\n"
        }
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int { Int(self / .milliseconds(1)) }
}

/// The figures that grew from the second quarter of a run to its last one.
struct SoakTrend {
    /// A growth above both is reported: a share of the earlier value, and an absolute one.
    private static let (memoryShare, memoryBytes) = (0.15, 24 << 20)
    private static let (descriptorCount, threadCount) = (8, 4)
    private static let (latencyFactor, latencyIncrease) = (3, Duration.milliseconds(100))

    /// A line for each.
    let growths: [String]

    init(_ records: [SoakRecord]) {
        let quarter = records.count / 4
        let (second, last) = (records[quarter..<2 * quarter], records.suffix(quarter))
        func medians<Value: Comparable>(_ value: (SoakRecord) -> Value) -> (Value, Value)? {
            guard quarter > 0 else { return nil }
            return (second.map(value).sorted()[quarter / 2], last.map(value).sorted()[quarter / 2])
        }
        var growths: [String] = []
        if let (before, after) = medians(\.memory), after > before + max(Self.memoryBytes, Int(Double(before) * Self.memoryShare)) {
            growths.append("memory grew from \(before >> 20) to \(after >> 20) MiB")
        }
        if let (before, after) = medians(\.descriptors), after > before + Self.descriptorCount {
            growths.append("descriptors grew from \(before) to \(after)")
        }
        if let (before, after) = medians(\.threads), after > before + Self.threadCount {
            growths.append("threads grew from \(before) to \(after)")
        }
        if let (before, after) = medians(\.latency), after > max(before * Self.latencyFactor, before + Self.latencyIncrease) {
            growths.append("the time of a query grew from \(before.wholeMilliseconds) to \(after.wholeMilliseconds) ms")
        }
        self.growths = growths
    }
}
