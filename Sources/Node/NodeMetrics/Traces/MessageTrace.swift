import Core
import Synchronization

/// Records when a message reached each stage. Travels with the message, and ends when no part of the node holds the message any more, however it was
/// dropped on its way. A failed one ends with the answer, since its notifications may wait for hours.
///
/// Everything in it is a time, a size, or a text from the source code: nothing that identifies a person or a device.
package final class MessageTrace: Sendable {
    private struct State {
        var times = StageTimes()
        var kind: KindLabel?
        var failure: String?
        var segments: [EndedTrace] = []
        var isEnded = false
    }

    package let context: TraceContext
    /// The span of another program that caused the message.
    private let parent: UInt64?
    private let `protocol`: ProtocolLabel
    private let source: EndedTrace.Source
    private let received: ContinuousClock.Instant
    private let byteCount: Int
    private let tracer: MessageTracer
    private let state = Mutex(State())

    init(
        _ context: TraceContext, parent: UInt64?, of protocol: ProtocolLabel, from source: EndedTrace.Source,
        received: ContinuousClock.Instant, byteCount: Int, tracer: MessageTracer
    ) {
        self.context = context
        self.parent = parent
        self.protocol = `protocol`
        self.source = source
        self.received = received
        self.byteCount = byteCount
        self.tracer = tracer
    }

    deinit {
        let state = state.withLock(\.self)
        if !state.isEnded { tracer.ended(snapshot(state)) }
    }

    private func snapshot(_ state: State) -> EndedTrace {
        EndedTrace(
            context: context, parent: parent, protocol: `protocol`, source: source, kind: state.kind, received: received,
            times: state.times, byteCount: byteCount, failure: state.failure, segments: state.segments)
    }

    /// - Parameter held: for how long the answer was held before it was published.
    package func mark(
        _ stage: TraceStage, _ kind: KindLabel? = nil, held: Duration = .zero, at time: ContinuousClock.Instant = .now
    ) {
        let elapsed = received.duration(to: time).nanoseconds
        let ended: EndedTrace? = state.withLock { state in
            guard !state.isEnded else { return nil }
            if let kind { state.kind = kind }
            state.times.mark(stage, at: elapsed, held: held.nanoseconds)
            guard stage == .answered, state.failure != nil else { return nil }
            state.isEnded = true
            return snapshot(state)
        }
        if let ended { tracer.ended(ended) }
    }

    /// - Parameter reason: a literal, so that it can't contain anything of the message.
    package func fail(_ reason: StaticString) { fail(because: "\(reason)") }

    package func fail(_ counter: Counter) { fail(because: counter.name) }

    private func fail(because reason: String) {
        state.withLock { $0.failure = reason }
    }

    /// This message as a segment, for the trace of the message that it is a part of.
    package var asSegment: EndedTrace { state.withLock { snapshot($0) } }

    /// - Parameter segments: the earlier segments of the message. This is the trace of the last one.
    package func link(_ segments: [EndedTrace]) {
        state.withLock { $0.segments = segments }
    }

    /// For a post: the context of the span ``TraceStage/posted``.
    package var postContext: TraceContext { EndedTrace.context(ofSpan: StageTimes.index(of: .posted), in: context) }
}

/// A trace whose message has left the node.
package struct EndedTrace: Sendable {
    package enum Source: Sendable {
        case network, http
    }

    /// Of the root span.
    package let context: TraceContext
    package let parent: UInt64?
    package let `protocol`: ProtocolLabel
    package let source: Source
    /// nil when the message was not decoded.
    package let kind: KindLabel?
    package let received: ContinuousClock.Instant
    package let times: StageTimes
    package let byteCount: Int
    package let failure: String?
    /// The segments that came before the last.
    package let segments: [EndedTrace]

    /// Whether this node did more than to decode the message. All others are handled by another node, or were not for this one.
    package var isHandled: Bool {
        failure != nil || [.committed, .posted, .answered].contains { (stage: TraceStage) in times[stage] != nil }
    }

    /// The context of one of the spans below the root.
    package static func context(ofSpan index: Int, in root: TraceContext) -> TraceContext {
        TraceContext(
            high: root.high, low: root.low, span: mixedID(root.span &+ UInt64(index)), isSampled: root.isSampled)
    }
}

/// Mixes a number so that consecutive ones give unrelated ids, never 0. Ids need not be unpredictable, only distinct.
func mixedID(_ number: UInt64) -> UInt64 {
    var generator = SplitMix64(seed: number &* 0x9E37_79B9_7F4A_7C15)
    return max(1, generator.next())
}
