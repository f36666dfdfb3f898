import Core
import Testing

@testable import NodeMetrics

@Suite("Traces of messages")
struct TraceTests {
    private static let start = ContinuousClock.now

    private static func configuration(rate: Double, slow: Duration? = nil) -> TraceBuffer.Configuration {
        var configuration = TraceBuffer.Configuration()
        configuration.rate = rate
        configuration.slow = slow
        return configuration
    }

    /// A request that was answered after this time.
    private static func pass(_ tracer: MessageTracer, after end: Duration, held: Duration = .zero, failing reason: StaticString? = nil) {
        let trace = tracer.begin(.status, received: start, byteCount: 700)
        trace.mark(.decoded, .request, at: start + end / 4)
        trace.mark(.committed, at: start + end / 2)
        if let reason { trace.fail(reason) }
        trace.mark(.answered, held: held, at: start + end)
    }

    @Test("The spans of a trace add up to its duration, and the mean of 1,000 traces is the measured latency")
    func sums() throws {
        let tracer = MessageTracer(Self.configuration(rate: 1), seed: 1)
        let counters = Counters([.messages, .node], tracer: tracer)
        for number in 1...1_000 {
            let received = ContinuousClock.now - .milliseconds(number)
            let trace = tracer.begin(.status, received: received, byteCount: 700)
            let times = MessageTimes(received: received, delay: nil, trace: trace)
            counters.reached(.valid, .request, times: times)
            trace.mark(.decided)
            counters.reached(.durable, .request, times: times)
            trace.mark(.queued)
            trace.mark(.posted)
            counters.reached(.answered, .request, times: times)
        }
        var (traced, count) = (0.0, 0)
        while case let batch = tracer.take(), !batch.traces.isEmpty {
            count += batch.traces.count
            for trace in batch.traces {
                let spans = trace.times.spans
                #expect(spans.map(\.name) == ["decode", "decide", "commit", "queue", "post", "answer"])
                let sum = spans.reduce(0) { $0 + $1.end - $1.start }
                #expect(sum == trace.times.length)
                traced += Double(sum) / 1e9
            }
        }
        let measured = counters.registry.histogram(.sinceReceipt, ProtocolLabel.status, StageLabel.answered, KindLabel.request).seconds
        #expect(count == 1_000)
        #expect(measured > 300)
        #expect(abs(traced / measured - 1) < 0.05)
    }

    @Test("A share of traces is sampled; slow and failed ones are kept whatever the share, and the hold does not make one slow")
    func sampling() {
        let tenth = MessageTracer(Self.configuration(rate: 0.1), seed: 7)
        for _ in 0..<2_000 { Self.pass(tenth, after: .milliseconds(1)) }
        #expect((150...250).contains(tenth.take().traces.count))

        let none = MessageTracer(Self.configuration(rate: 0, slow: .seconds(2)), seed: 7)
        Self.pass(none, after: .seconds(1))
        Self.pass(none, after: .seconds(3), held: .milliseconds(1_500))
        #expect(none.take().traces.isEmpty)
        Self.pass(none, after: .seconds(3))
        Self.pass(none, after: .milliseconds(1), failing: "refused")
        #expect(none.take().traces.map(\.failure) == [nil, "refused"])
    }

    @Test("A message that this node did not handle leaves no trace")
    func unhandled() {
        let tracer = MessageTracer(Self.configuration(rate: 1, slow: .zero))
        tracer.begin(.status, received: Self.start, byteCount: 1).mark(.decoded, at: Self.start + .seconds(9))
        #expect(tracer.take().traces.isEmpty)
    }

    @Test("A failed trace ends with the answer, though its notification still waits")
    func failedEarly() {
        let tracer = MessageTracer(Self.configuration(rate: 0))
        let trace = tracer.begin(.status, received: Self.start, byteCount: 1)
        trace.fail("late")
        trace.mark(.answered)
        #expect(tracer.take().traces.map(\.failure) == ["late"])
        trace.mark(.posted)
        withExtendedLifetime(trace) {}
        #expect(tracer.take().traces.isEmpty)
    }

    @Test("Sampled traces and the ring are bounded; dropped ones are counted")
    func bounds() {
        var configuration = Self.configuration(rate: 1, slow: .seconds(2))
        (configuration.sampledLimit, configuration.ringLimit, configuration.batchLimit) = (3, 4, 5)
        let tracer = MessageTracer(configuration)
        for _ in 0..<5 { Self.pass(tracer, after: .milliseconds(1)) }
        for second in 3..<9 { Self.pass(tracer, after: .seconds(second)) }
        let batch = tracer.take()
        // Of the ring the newest are kept, of sampled traces the oldest.
        #expect(batch.traces.prefix(4).map { $0.times.length / 1_000_000_000 } == [5, 6, 7, 8])
        #expect(batch.traces.count == 5 && batch.isFull)
        #expect(batch.droppedCount == 4)
        let rest = tracer.take()
        #expect(rest.traces.count == 2 && !rest.isFull && rest.droppedCount == 0)
    }

    @Test("A traceparent is written as it is read, and nothing else is read")
    func traceparent() throws {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        #expect(try #require(TraceContext(traceparent: text)).traceparent == text)
        for other in [
            "", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        ] { #expect(TraceContext(traceparent: other) == nil) }
        let tracer = MessageTracer(Self.configuration(rate: 0))
        #expect(TraceContext(traceparent: "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later")?.traceparent == text)
        let trace = tracer.begin(.status, received: Self.start, caller: TraceContext(traceparent: text), byteCount: 1)
        #expect(trace.context.low == 0xa3ce_929d_0e0e_4736)
        #expect(trace.context.isSampled == false)
    }
}
