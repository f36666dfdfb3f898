import Synchronization

/// A counter, with its name in the minutely log line and in `admin status`, and the series that exposes it.
///
/// Any module declares its own as static members in an extension, and lists them in a ``MetricGroup``:
///
///     extension Counter {
///         package static let postAccepted = Counter("post accepted", .posts, PostClassLabel.accepted)
///     }
///
/// The value itself is an index, unique in the process and assigned at the declaration, so that ``Counters`` finds the cell without a lookup.
public struct Counter: Hashable, Sendable, CustomStringConvertible {
    /// A metric, with a value for each of its labels.
    package struct Series: Sendable {
        package let metric: Metric
        package let labels: [any MetricLabel]
    }

    private struct Declaration: Sendable {
        let name: String
        let series: Series?
    }

    /// The counters of the whole process, by index.
    private static let declarations = Mutex<[Declaration]>([])

    let index: Int
    /// Whether it counts messages that were decrypted before they were dropped.
    package let isAfterOpening: Bool

    /// A counter that is in the log and on the status page, but not among the metrics.
    ///
    /// - Parameter name: Unique among the node's counters.
    package init(_ name: String) {
        self.init(name, nil)
    }

    /// - Parameters:
    ///   - name: Unique among the node's counters.
    ///   - labels: A value for each of the metric's labels, in its order.
    package init(_ name: String, _ metric: Metric, _ labels: any MetricLabel...) {
        self.init(name, Series(metric: metric, labels: labels))
    }

    private init(_ name: String, _ series: Series?) {
        isAfterOpening = if case LossStageLabel.opening? = series?.labels.first { false } else { true }
        index = Self.declarations.withLock { declarations in
            declarations.append(Declaration(name: name, series: series))
            return declarations.count - 1
        }
    }

    private var declaration: Declaration { Self.declarations.withLock { $0[index] } }

    package var name: String { declaration.name }
    /// nil if the counter is not among the metrics.
    package var series: Series? { declaration.series }
    /// Same as `name`.
    public var description: String { name }

    public static func == (left: Counter, right: Counter) -> Bool { left.index == right.index }
    public func hash(into hasher: inout Hasher) { hasher.combine(index) }
}
