/// The stages of a message after its receipt. The spans of a trace are the times between them.
package enum TraceStage: Int, CaseIterable, Sendable {
    /// Decrypted, verified and parsed.
    case decoded
    /// The rules have decided the changes, or the answer to a query.
    case decided
    /// The changes are durable.
    case committed
    /// The first post of its notifications begins.
    case queued
    /// The last of its notifications was accepted by gorush or a push service, and that is stored.
    case posted
    /// The answer was published, or the response was made.
    case answered

    /// The name of the span that ends with the stage.
    package var span: String {
        switch self {
        case .decoded: "decode"
        case .decided: "decide"
        case .committed: "commit"
        case .queued: "queue"
        case .posted: "post"
        case .answered: "answer"
        }
    }
}

/// The times at which a message reached its stages.
package struct StageTimes: Sendable {
    /// Nanoseconds since the receipt by ``TraceStage``; -1 for a stage that was not reached.
    private var times = InlineArray<6, Int64>(repeating: -1)
    /// For how long the answer was held before it was published.
    package private(set) var held: Int64 = 0

    package init() {}

    package subscript(stage: TraceStage) -> Int64? { times[stage.rawValue] < 0 ? nil : times[stage.rawValue] }

    /// A stage may be reached again. The first time counts of ``TraceStage/committed`` and ``TraceStage/queued``, the last of all others.
    package mutating func mark(_ stage: TraceStage, at time: Int64, held: Int64 = 0) {
        guard times[stage.rawValue] < 0 || (stage != .committed && stage != .queued) else { return }
        times[stage.rawValue] = max(0, time)
        if stage == .answered { self.held = max(0, held) }
    }

    /// From the receipt to the last stage, in nanoseconds.
    package var length: Int64 { times.indices.reduce(0) { max($0, times[$1]) } }

    package struct Span: Hashable, Sendable {
        package let name: String
        /// Different for each name.
        package let index: Int
        /// Nanoseconds since the receipt.
        package let start: Int64
        package let end: Int64
    }

    static func index(of stage: TraceStage) -> Int { stage.rawValue + 1 }

    /// A span for each stage that was reached, in order: each begins where the one before ends, so together they are as long as ``length``.
    package var spans: [Span] {
        var spans: [Span] = []
        var start: Int64 = 0
        let reached = TraceStage.allCases.filter { self[$0] != nil }.sorted {
            (times[$0.rawValue], $0.rawValue) < (times[$1.rawValue], $1.rawValue)
        }
        for stage in reached {
            let end = times[stage.rawValue]
            if stage == .answered, held > 0 {
                let due = min(end, start + held)
                spans.append(Span(name: "hold", index: TraceStage.allCases.count + 1, start: start, end: due))
                start = due
            }
            spans.append(Span(name: stage.span, index: Self.index(of: stage), start: start, end: end))
            start = end
        }
        return spans
    }
}
