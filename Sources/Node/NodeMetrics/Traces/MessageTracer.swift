import Synchronization

/// Begins the traces of messages, and keeps those to be exported.
package final class MessageTracer: Sendable {
    private let buffer: Mutex<TraceBuffer>
    private let seed: UInt64
    private let number = Atomic<UInt64>(0)
    /// Traces whose random number is lower are sampled.
    private let threshold: UInt64

    /// - Parameter seed: distinguishes the ids of this process from those of others.
    package init(_ configuration: TraceBuffer.Configuration, seed: UInt64 = .random(in: .min ... .max)) {
        buffer = Mutex(TraceBuffer(configuration))
        self.seed = seed
        threshold = configuration.rate >= 1 ? .max : UInt64(max(0, configuration.rate) * 0x1p64)
    }

    /// - Parameters:
    ///   - caller: the context of the program that caused the message: the trace becomes a part of its. Its sampling is ignored, since any client could
    ///     set it.
    package func begin(
        _ protocol: ProtocolLabel, _ source: EndedTrace.Source = .network, received: ContinuousClock.Instant = .now,
        caller: TraceContext? = nil, byteCount: Int
    ) -> MessageTrace {
        let number = seed &+ 3 &* self.number.add(1, ordering: .relaxed).newValue
        let random = mixedID(number)
        let context = TraceContext(
            high: caller?.high ?? random, low: caller?.low ?? mixedID(number &+ 1), span: mixedID(number &+ 2),
            isSampled: random < threshold)
        return MessageTrace(
            context, parent: caller?.span, of: `protocol`, from: source, received: received, byteCount: byteCount, tracer: self)
    }

    func ended(_ trace: EndedTrace) { buffer.withLock { $0.add(trace) } }

    /// The next traces to export.
    package func take() -> TraceBuffer.Batch { buffer.withLock { $0.take() } }
}
