import Core
package import CurlClient
package import Logging

/// Posts ended traces to a collector by OTLP/HTTP. Traces that the collector does not take are dropped and counted, never posted again: nothing in the
/// node waits for a collector, and no memory is kept for it.
package struct TraceExporter: Sendable {
    private static let interval = Duration.seconds(1)
    private static let timeout = Duration.seconds(5)
    /// The last export must not delay the node's stop.
    private static let lastTimeout = Duration.seconds(1)
    private static let responseLimit = 64 << 10
    private static let path = "/v1/traces"

    private let tracer: MessageTracer
    private let url: String
    private let resource: OTLPTraces.Resource
    private let counters: Counters
    private let client: CurlClient
    private let errors: RepeatedErrors

    /// - Parameters:
    ///   - url: the collector's, with or without the path `/v1/traces`.
    ///   - header: sent with each request, such as a token.
    package init(
        _ tracer: MessageTracer, to url: HTTPBaseURL, header: (name: String, value: String)? = nil, resource: OTLPTraces.Resource,
        counters: Counters, logger: Logger
    ) {
        self.tracer = tracer
        self.url = url.description.hasSuffix(Self.path) ? url.description : url.appending(path: Self.path)
        self.resource = resource
        self.counters = counters
        var configuration = CurlConfiguration(maximumConnectionsPerHost: 1)
        configuration.headers = [header].compactMap(\.self)
        client = CurlClient(configuration: configuration)
        errors = RepeatedErrors(logger)
    }

    /// Exports once a second until cancelled, and at once while more wait than fit into a request.
    package func run() async {
        while !Task.isCancelled {
            while await export(within: Self.timeout), !Task.isCancelled {}
            try? await Task.sleep(for: Self.interval)
        }
    }

    /// Exports the last traces.
    package func finish() async {
        while await export(within: Self.lastTimeout) {}
    }

    /// - Returns: whether the collector took a full batch, so that more may wait.
    private func export(within timeout: Duration) async -> Bool {
        let batch = tracer.take()
        let traces = batch.traces
        counters.add(.traceDropped, batch.droppedCount)
        guard !traces.isEmpty else { return false }
        let request = HTTPRequest(
            method: "POST", url: url, headers: [("Content-Type", "application/x-protobuf")],
            body: OTLPTraces(traces, of: resource, wall: .now(), steady: .now).encoded(), timeout: timeout,
            maximumResponseByteCount: Self.responseLimit)
        let failure: String
        do throws(HTTPError) {
            let status = try await client.send(request).status
            guard !(200..<300).contains(status) else {
                counters.add(.traceExported, traces.count)
                return batch.isFull
            }
            failure = "status \(status)"
        } catch {
            failure = error.message
        }
        counters.add(.traceFailed, traces.count)
        errors.log("failed to export traces", reason: failure, count: traces.count)
        return false
    }
}
