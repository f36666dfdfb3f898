package import Core

/// An `ExportTraceServiceRequest` of OTLP 1, the body of `POST /v1/traces`. The fields that are written:
///
///     ExportTraceServiceRequest  1 ResourceSpans
///     ResourceSpans              1 Resource { 1 KeyValue }   2 ScopeSpans { 1 InstrumentationScope { 1 name }   2 Span }
///     Span                       1 trace_id (16 bytes)   2 span_id (8 bytes)   4 parent_span_id   5 name   6 kind   7 start_time_unix_nano
///                                8 end_time_unix_nano   9 KeyValue   13 Link { 1 trace_id   2 span_id }   15 Status { 2 message   3 code }
///     KeyValue                   1 key   2 AnyValue { 1 string_value   3 int_value }
package struct OTLPTraces: Sendable {
    /// The attributes of the program.
    package struct Resource: Sendable {
        package let version: String
        /// The node's name among several; nil for a single node.
        package let instance: String?

        package init(version: String, instance: String?) {
            self.version = version
            self.instance = instance
        }
    }

    private enum SpanKind: UInt64 {
        case `internal` = 1
        case server = 2
        case client = 3
        case consumer = 5
    }

    private static let errorCode: UInt64 = 2

    private let traces: [EndedTrace]
    private let resource: Resource
    /// One moment by both clocks, from which the times of the spans are computed.
    private let clock: (wall: Timestamp, steady: ContinuousClock.Instant)

    package init(_ traces: [EndedTrace], of resource: Resource, wall: Timestamp, steady: ContinuousClock.Instant) {
        self.traces = traces
        self.resource = resource
        clock = (wall, steady)
    }

    package func encoded() -> [UInt8] {
        var request = ProtobufWriter(capacity: traces.count * 1_024)
        request.field(1) { resourceSpans in
            resourceSpans.field(1) {
                $0.attribute("service.name", "waku-push", number: 1)
                $0.attribute("service.version", resource.version, number: 1)
                if let instance = resource.instance { $0.attribute("service.instance.id", instance, number: 1) }
            }
            resourceSpans.field(2) { scopeSpans in
                scopeSpans.field(1) { $0.field(1, "waku-push") }
                for trace in traces { write(trace, to: &scopeSpans) }
            }
        }
        return request.bytes
    }

    private func write(_ trace: EndedTrace, to scopeSpans: inout ProtobufWriter) {
        for segment in trace.segments {
            write(segment.context, parent: nil, "segment", .consumer, of: segment, from: 0, to: segment.times.length, &scopeSpans) {
                $0.attributes(of: segment)
            }
        }
        write(
            trace.context, parent: trace.parent, trace.kind?.rawValue ?? "message", trace.source == .http ? .server : .consumer, of: trace,
            from: 0, to: trace.times.length, &scopeSpans
        ) { span in
            span.attributes(of: trace)
            span.attribute("waku_push.outcome", trace.failure ?? "handled")
            for segment in trace.segments {
                span.field(13) {
                    $0.field(1, segment.context.traceBytes)
                    $0.field(2, segment.context.spanBytes)
                }
            }
            if let failure = trace.failure {
                span.field(15) {
                    $0.field(2, failure)
                    $0.field(3, Self.errorCode)
                }
            }
        }
        for step in trace.times.spans {
            write(
                EndedTrace.context(ofSpan: step.index, in: trace.context), parent: trace.context.span, step.name,
                step.index == StageTimes.index(of: .posted) ? .client : .internal, of: trace, from: step.start, to: step.end, &scopeSpans
            ) { _ in }
        }
    }

    private func write(
        _ context: TraceContext, parent: UInt64?, _ name: String, _ kind: SpanKind, of trace: EndedTrace, from start: Int64, to end: Int64,
        _ scopeSpans: inout ProtobufWriter, _ fill: (inout ProtobufWriter) -> Void
    ) {
        let received = clock.wall.rawValue - trace.received.duration(to: clock.steady).nanoseconds
        scopeSpans.field(2) { span in
            span.field(1, context.traceBytes)
            span.field(2, context.spanBytes)
            if let parent { span.field(4, bigEndianBytes(parent)) }
            span.field(5, name)
            span.field(6, kind.rawValue)
            span.fixedField(7, UInt64(max(0, received + start)))
            span.fixedField(8, UInt64(max(0, received + end)))
            fill(&span)
        }
    }
}

private func bigEndianBytes(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.bigEndian, Array.init) }

extension TraceContext {
    fileprivate var traceBytes: [UInt8] { bigEndianBytes(high) + bigEndianBytes(low) }
    fileprivate var spanBytes: [UInt8] { bigEndianBytes(span) }
}

extension ProtobufWriter {
    fileprivate mutating func attributes(of trace: EndedTrace) {
        attribute("waku_push.protocol", trace.protocol.rawValue)
        guard trace.byteCount > 0 else { return }
        // Rounded up to a power of two: exact sizes tell messages apart.
        attribute("waku_push.size", 1 << (Int.bitWidth - (trace.byteCount - 1).leadingZeroBitCount))
    }

    /// - Parameter number: 9 in a span, 1 in a resource.
    fileprivate mutating func attribute(_ key: String, _ value: String, number: Int = 9) {
        field(number) { pair in
            pair.field(1, key)
            pair.field(2) { $0.field(1, value) }
        }
    }

    private mutating func attribute(_ key: String, _ value: Int) {
        field(9) { pair in
            pair.field(1, key)
            pair.field(2) { $0.field(3, UInt64(value)) }
        }
    }

    /// A `fixed64`, little-endian.
    fileprivate mutating func fixedField(_ number: Int, _ value: UInt64) {
        varint(UInt64(number) << 3 | 1)
        append(withUnsafeBytes(of: value.littleEndian, Array.init))
    }
}
