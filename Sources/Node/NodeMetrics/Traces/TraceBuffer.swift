import Core
import DequeModule

/// Decides at the end of a trace whether it is exported, and keeps it until then: sampled ones in a queue that drops the newest, and slow or failed ones
/// in a ring that drops the oldest.
package struct TraceBuffer: Sendable {
    package struct Configuration: Sendable {
        /// The share of messages whose traces are exported in any case, from 0 to 1.
        package var rate = 0.01
        /// Traces that take longer are exported too, the time for which the answer was held not included; nil: none for that reason.
        package var slow: Duration? = .seconds(2)
        /// Limit of ended traces that wait because they were sampled.
        package var sampledLimit = 2_048
        /// Limit of ended traces that wait because they were slow or failed.
        package var ringLimit = 256
        /// The number of traces in an export.
        package var batchLimit = 512

        package init() {}
    }

    private let configuration: Configuration
    private let slow: Int64
    private var sampled: Deque<EndedTrace> = []
    private var ring: Deque<EndedTrace> = []
    private var droppedCount = 0

    package init(_ configuration: Configuration) {
        self.configuration = configuration
        slow = configuration.slow?.nanoseconds ?? .max
    }

    package mutating func add(_ trace: EndedTrace) {
        guard trace.isHandled else { return }
        if trace.failure != nil || trace.times.length - trace.times.held > slow {
            if ring.count >= configuration.ringLimit, ring.popFirst() != nil { droppedCount += 1 }
            ring.append(trace)
        } else if trace.context.isSampled {
            if sampled.count < configuration.sampledLimit { sampled.append(trace) } else { droppedCount += 1 }
        }
    }

    package struct Batch: Sendable {
        package let traces: [EndedTrace]
        /// Number of traces that were dropped since the last batch.
        package let droppedCount: Int
        /// Whether more wait than fit into a batch.
        package let isFull: Bool
    }

    /// Removes the next batch, slow and failed traces first; empty when none waits.
    package mutating func take() -> Batch {
        var batch: [EndedTrace] = []
        while batch.count < configuration.batchLimit, let next = ring.popFirst() ?? sampled.popFirst() { batch.append(next) }
        defer { droppedCount = 0 }
        return Batch(traces: batch, droppedCount: droppedCount, isFull: batch.count == configuration.batchLimit)
    }
}
