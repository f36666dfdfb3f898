import Core
import CurlClient
import Delivery
import Foundation
import Logging
import LoopbackRelay
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushClient
import PushNode
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// The traces of a node, decoded by opentelemetry-proto from PyPI.
@Suite(
    "Traces by OTLP", .enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python with opentelemetry-proto: see Deploy/test"),
    .timeLimit(.minutes(5)))
struct TraceFlowTests {
    struct Span: Decodable {
        let name: String
        let kind: Int
        let trace: String
        let span: String
        let parent: String
        let start: Int64
        let end: Int64
        let attributes: [String: String]
        let events: Int
        let links: [String]
        let status: Int
        let message: String
        let resource: [String: String]

        var seconds: Double { Double(end - start) / 1e9 }
    }

    struct Export {
        let collector: PythonPeer

        var spans: [Span] {
            collector.said("span").compactMap { try? JSONDecoder().decode(Span.self, from: Data($0.joined(separator: " ").utf8)) }
        }
        /// Of traces, without segments.
        var roots: [Span] { spans.filter { $0.attributes["waku_push.outcome"] != nil } }

        func children(of root: Span) -> [Span] { spans.filter { $0.parent == root.span && $0.trace == root.trace } }
    }

    private static let gorushAccepts = RawHTTPServer.Reply.status(200, body: #"{"counts":1,"logs":[],"success":"ok"}"#)
    private let fixture: NodeFixture
    private let bob: TestClient
    private let collector: PythonPeer

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey, accessToken: AccessToken("2c1d8f7e-6b5a-4c39-9a61-d7e0b1c2a3f4"))
        collector = try PythonPeer("otlp_collector.py")
    }

    private func tracer(rate: Double, slow: Duration? = nil) -> MessageTracer {
        var sampling = TraceBuffer.Configuration()
        (sampling.rate, sampling.slow) = (rate, slow)
        return MessageTracer(sampling)
    }

    private func exporter(_ tracer: MessageTracer, _ node: RunningNode, path: String = "", port: Int? = nil) async throws -> TraceExporter {
        let own = try #require(Int(try await collector.says("port")[0]))
        return TraceExporter(
            tracer, to: try HTTPBaseURL(parsing: "http://127.0.0.1:\(port ?? own)\(path)"),
            resource: OTLPTraces.Resource(version: "1", instance: nil), counters: node.node.counters,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Exports until `count` traces have arrived.
    private func export(_ exporter: TraceExporter, until count: Int) async throws -> Export {
        let export = Export(collector: collector)
        try await eventually {
            await exporter.finish()
            return export.roots.count >= count
        }
        return export
    }

    /// Without health checks.
    private func posts(_ gorush: RawHTTPServer) -> [RawHTTPServer.Request] { gorush.requests.filter { $0.head.hasPrefix("POST") } }

    private func withNode(
        _ engine: StoreEngine, _ tracer: MessageTracer, gorush: RawHTTPServer, replyDelay: Duration = .zero,
        awaitLimit: Duration = .seconds(60),
        _ body: @escaping @Sendable (RunningNode) async throws -> Void
    ) async throws {
        let location = try await engine.location()
        let client = try GorushClient(client: CurlClient(), url: gorush.url)
        try await fixture.withNode(
            configure: {
                $0.store = location
                $0.tracer = tracer
                $0.replyDelay = replyDelay
                $0.awaitLimit = awaitLimit
                $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
            }, posting: client, body)
    }

    @Test("Messages of all kinds are traced, linked to their segments, and posted with their trace", arguments: StoreEngine.allCases)
    func messages(_ engine: StoreEngine) async throws {
        let gorush = try RawHTTPServer { _ in Self.gorushAccepts }
        let tracer = tracer(rate: 1)
        let token = "5ec2e7de71ce70ce5ec2e7"
        let asker = PrivateKey.generate()
        try await withNode(engine, tracer, gorush: gorush, replyDelay: .milliseconds(200)) { node async throws in
            #expect(try await node.register(bob, token: token) == nil)
            try await node.withClient(asker) {
                _ = try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(60))
            }
            let messageID = randomBytes(32)
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            let carol = TestClient(of: node.server)
            let registration = carol.registration {
                $0.allowedKeyList = Array(repeating: [UInt8](repeating: 7, count: 64), count: 25_000)
                $0.allowFromContactsOnly = true
            }
            let segments = EnvelopeSealing.seal(
                carol.envelope(registration), to: .personal(node.server), wakuSigner: carol.identity, at: .now())
            #expect(segments.count > 1)
            for segment in segments { node.network.publish(segment, on: .statusDefault) }
            let export = try await export(try await exporter(tracer, node), until: 4)

            let roots = export.roots
            #expect(roots.map(\.name).sorted() == ["query", "registration", "registration", "request"])
            let spans = export.spans
            for root in roots {
                let steps = export.children(of: root)
                let expected =
                    switch root.name {
                    case "registration": ["decode", "decide", "commit", "answer"]
                    case "query": ["decode", "decide", "answer"]
                    default: ["decode", "decide", "commit", "queue", "post", "answer"]
                    }
                // Held only if it was ready before the delay was over.
                #expect(steps.map(\.name).filter { $0 != "hold" } == expected)
                #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.end == $1.start })
                #expect(steps.reduce(0) { $0 + $1.end - $1.start } == root.end - root.start)
                #expect(root.kind == 5 && root.parent.isEmpty && root.status == 0)
                #expect(root.attributes["waku_push.protocol"] == "status" && root.attributes["waku_push.outcome"] == "handled")
                #expect(root.resource["service.name"] == "waku-push")
                #expect(abs(Double(root.end) / 1e9 - Date().timeIntervalSince1970) < 600)
            }
            let links = roots.flatMap(\.links)
            #expect(links.count == segments.count - 1)
            let linked = spans.filter { $0.name == "segment" }
            #expect(Set(linked.map { $0.trace + $0.span }) == Set(links))
            #expect(Set(roots.map(\.trace)).count == 4)

            let request = try #require(roots.first { $0.name == "request" })
            let post = try #require(export.children(of: request).first { $0.name == "post" })
            #expect(post.kind == 3)
            #expect(posts(gorush).map { $0.header("traceparent") } == ["00-\(request.trace)-\(post.span)-01"])

            // The measured latency of the same messages.
            let samples = try await node.scrape().samples
            let measured = samples.filter {
                $0.key.hasPrefix("\(Metric.sinceReceipt.name)_sum{") && $0.key.contains("stage=\"answered\"")
            }.values.reduce(0, +)
            let traced = roots.reduce(0) { $0 + $1.seconds } - spans.filter { $0.name == "hold" }.reduce(0) { $0 + $1.seconds }
            #expect(abs(traced / measured - 1) < 0.05)

            var secrets: [[UInt8]] = [
                Array(token.utf8), bob.accessToken.bytes, messageID, bob.installationID.bytes,
            ]
            for key in [bob.identity, carol.identity, asker, fixture.identity] {
                let hash = KeyHash(of: key.publicKey)
                secrets += [key.withBytes { Array($0) }, key.publicKey.uncompressed, key.publicKey.compressed, hash.bytes]
                for topic in [StatusTopics.personal(key.publicKey), StatusTopics.partitioned(key.publicKey), StatusTopics.query(hash)] {
                    secrets += [Array(topic.utf8), Array(ContentTopic(TopicTag(of: topic)).rawValue.utf8)]
                }
            }
            secrets += secrets.flatMap { [SHA256.hash($0), Keccak256.hash($0)] }
            let said = collector.process.lines.joined(separator: "\n")
            let lines = said.lowercased()
            for secret in secrets {
                #expect(!lines.contains(hexString(Array(secret.prefix(8)))))
                #expect(!lines.contains(String(decoding: secret, as: UTF8.self).lowercased()))
                #expect(!said.contains(Data(secret).base64EncodedString().prefix(12)))
            }
            #expect(spans.allSatisfy { $0.events == 0 })
            #expect(
                Set(spans.flatMap(\.attributes.keys)) == ["waku_push.protocol", "waku_push.outcome", "waku_push.size"])
        }
    }

    @Test("At rate 0 a request whose post failed is exported at its answer, and a slow one", arguments: StoreEngine.allCases)
    func failures(_ engine: StoreEngine) async throws {
        let gorush = try RawHTTPServer { _ in .status(503) }
        let tracer = tracer(rate: 0)
        try await withNode(engine, tracer, gorush: gorush, awaitLimit: .milliseconds(300)) { node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == .internalError)
            let export = try await export(try await exporter(tracer, node), until: 1)
            #expect(export.roots.map(\.name) == ["request"])
            #expect(export.roots.map(\.message) == ["notification not accepted in time"])
            #expect(export.roots.map(\.status) == [2])
            #expect(posts(gorush).allSatisfy { $0.header("traceparent")?.hasSuffix("-00") == true })
        }
    }

    @Test("A slow message is exported at rate 0")
    func slow() async throws {
        let gorush = try RawHTTPServer { _ in Self.gorushAccepts }
        let tracer = tracer(rate: 0, slow: .zero)
        try await withNode(.sqlite, tracer, gorush: gorush) { node async throws in
            #expect(try await node.register(bob) == nil)
            let export = try await export(try await exporter(tracer, node), until: 1)
            #expect(export.roots.map(\.name) == ["registration"])
        }
    }

    @Test("Traces are dropped and counted when the collector is unavailable or refuses them")
    func awayCollector() async throws {
        let gorush = try RawHTTPServer { _ in Self.gorushAccepts }
        let tracer = tracer(rate: 1)
        try await withNode(.sqlite, tracer, gorush: gorush) { node async throws in
            let port = Int(try freePort())
            for (path, port) in [("", port), ("/refuse", nil)] as [(String, Int?)] {
                let exporter = try await exporter(tracer, node, path: path, port: port)
                let before = node.count(.traceFailed)
                #expect(try await node.register(bob, version: UInt64(before + 1)) == nil)
                try await eventually {
                    await exporter.finish()
                    return node.count(.traceFailed) == before + 1
                }
            }
            #expect(tracer.take().traces.isEmpty)
            #expect(node.count(.traceExported) == 0)
            #expect(collector.said("span").isEmpty)
        }
    }

    @Test("Without a tracer nothing is traced, and gorush gets no header")
    func off() async throws {
        let gorush = try RawHTTPServer { _ in Self.gorushAccepts }
        let client = try GorushClient(client: CurlClient(), url: gorush.url)
        try await fixture.withNode(posting: client) { node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == nil)
            #expect(posts(gorush).map { $0.header("traceparent") } == [nil])
        }
    }
}
