import ArgumentParser
import Cluster
import CurlClient
import Foundation
import Logging
import NodeAssembly
import NodeMetrics
import PushNode
import ServiceLifecycle

/// A share from 0 to 1.
struct ShareArgument: DescribedArgument {
    static let allowedValues = "a number from 0 to 1 such as 0.01"

    let share: Double
    let defaultValueDescription: String

    init?(argument: String) {
        guard let share = Double(argument), (0...1).contains(share) else { return nil }
        self.share = share
        defaultValueDescription = argument
    }

    init(_ share: Double) {
        self.share = share
        defaultValueDescription = "\(share)"
    }
}

/// Traces of messages, exported by OTLP/HTTP. Off unless `--otlp` is given.
struct TraceOptions: ParsableArguments {
    @Option(Settings.otlp) var otlp: String?
    @Option(Settings.otlpRate) var otlpRate: ShareArgument
    @Option(Settings.otlpSlow) var otlpSlow: OptionalDurationArgument
    @Option(Settings.otlpHeaderFile) var otlpHeaderFile: String?

    var url: String? { Settings.otlp.value(otlp) }
    var headerFile: String? { Settings.otlpHeaderFile.value(otlpHeaderFile) }

    typealias HTTPHeader = (name: String, value: String)

    struct Plan: Sendable {
        let url: HTTPBaseURL
        let header: HTTPHeader?
        let sampling: TraceBuffer.Configuration
    }

    /// nil when nothing is traced.
    func plan(_ failures: ConfigurationFailures) -> Plan? {
        guard let text = url else {
            let isStandard = [
                "otlp-rate": otlpRate.share == Settings.otlpRate.standard.share,
                "otlp-slow": otlpSlow.duration == Settings.otlpSlow.standard.duration,
                "otlp-header-file": headerFile == nil,
            ]
            // A printed default configuration names the defaults.
            for name in ["otlp-rate", "otlp-slow", "otlp-header-file"] where isStandard[name] == false {
                failures.check(name) { () throws -> Void in throw CommandFailure(.usage, "--\(name) has no effect without --otlp") }
            }
            return nil
        }
        let url = failures.check("otlp") { () throws -> HTTPBaseURL in try Self.collector(text) }
        let header: HTTPHeader? = failures.check("otlp-header-file") { () throws -> HTTPHeader? in try self.header() } ?? nil
        var sampling = TraceBuffer.Configuration()
        sampling.rate = otlpRate.share
        sampling.slow = otlpSlow.duration
        return url.map { Plan(url: $0, header: header, sampling: sampling) }
    }

    private static func collector(_ text: String) throws(CommandFailure) -> HTTPBaseURL {
        do throws(HTTPBaseURL.Problem) {
            return try HTTPBaseURL(parsing: text)
        } catch {
            throw CommandFailure(
                .usage,
                "--otlp is not the URL of a collector: give one such as http://127.0.0.1:4318, without user, password and query")
        }
    }

    private func header() throws(CommandFailure) -> HTTPHeader? {
        guard let headerFile else { return nil }
        let content = try PrivateFile(kind: "header file", path: headerFile)
            .read(upTo: SecretFile.maximumByteCount, remedy: "write one line of the form \"Name: value\" to it")
        let text = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard content.count <= SecretFile.maximumByteCount, let header = CurlConfiguration.header(parsing: text) else {
            throw CommandFailure(.data, "header file \(headerFile) must contain one line of the form \"Name: value\"")
        }
        return header
    }
}

/// Exports the traces of a node while it runs, and the last ones after it has stopped.
struct TraceService: Service {
    private let exporter: TraceExporter

    /// nil if the node does not trace messages.
    init?(_ plan: TraceOptions.Plan, _ configuration: ServerConfiguration, counters: Counters, logger: Logger) {
        guard let tracer = configuration.tracer else { return nil }
        exporter = TraceExporter(
            tracer, to: plan.url, header: plan.header,
            resource: OTLPTraces.Resource(version: Version.current, instance: configuration.cluster?.name), counters: counters,
            logger: logger)
    }

    func run() async {
        await cancelWhenGracefulShutdown { await exporter.run() }
        await exporter.finish()
    }
}
