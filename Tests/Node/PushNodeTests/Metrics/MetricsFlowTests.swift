import NodeAPI
import CurlClient
import Foundation
import Delivery
import LoopbackRelay
import NodeAssembly
import NodeMetrics
import PushClient
@testable import PushNode
import StatusProtocol
import StatusServer
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@Suite("GET /metrics over sockets", .timeLimit(.minutes(5)))
struct MetricsFlowTests {
    let fixture: NodeFixture
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    private func serving(_ configuration: inout ServerConfiguration) {
        configuration.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
    }

    /// Publishes messages of all kinds. Returns their number.
    @Sendable private func traffic(_ node: RunningNode, rounds: Int) async throws {
        #expect(try await node.register(bob) == nil)
        #expect(try await node.register(bob) == .versionMismatch)
        for _ in 0..<rounds {
            let devices = try await node.withClient { try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(60)) }
            #expect(devices.count == 1)
            #expect(try await node.notify(bob) == nil)
            let stranger = TestClient(of: node.server)
            #expect(try await node.notify(stranger) == .notRegistered)
        }
        let personal = ContentTopic(TopicTag(of: StatusTopics.personal(node.server)))
        let junk = WakuMessage(payload: randomBytes(300), contentTopic: personal, timestamp: .now())
        node.network.publish(junk, on: .statusDefault)
        node.network.publish(junk, on: .statusDefault)
        let old = try #require(
            EnvelopeSealing.seal(
                MetadataEnvelope.encode(
                    .request, payload: PushNotificationRequest(requests: [bob.notification()], messageID: [1]).encoded(),
                    signedBy: bob.identity
                ).bytes, to: .partitioned(node.server), wakuSigner: bob.identity, at: .now() - .seconds(3600)
            ).first)
        node.network.publish(old, on: .statusDefault)
        node.network.publish(
            WakuMessage(payload: [1], contentTopic: ContentTopic(rawValue: "/other/1/topic/proto"), timestamp: .now()), on: .statusDefault)
        try await node.wait {
            node.count(.duplicate) == 1 && node.count(.droppedUndecryptable) == 1 && node.count(.droppedOldRequest) == 1
                && node.count(.answerPublished) == 2 + 3 * rounds
        }
    }

    @Test("At every stage the counts of messages add up")
    func sums() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            try await traffic(node, rounds: 4)
            let scrape = try await node.scrape()
            #expect(scrape[.received] ?? 0 >= 18)
            #expect(scrape[.received] == scrape.sum(.foreign) + scrape.sum(.ours))
            #expect(
                scrape[.ours] == scrape.sum(.duplicates) + scrape.sum(.opened) + scrape.sum(.dropped, "stage=\"opening\""))
            #expect(scrape[.opened] == scrape.sum(.valid) + scrape.sum(.dropped, "stage=\"reading\""))
            #expect(scrape.sum(.valid) == scrape.sum(.handled) + scrape.sum(.dropped, "stage=\"handling\""))
            #expect(scrape.sum(.handled) == scrape.sum(.answersPublished))

            #expect(scrape[.valid, "protocol=\"status\",kind=\"registration\""] == 2)
            #expect(scrape[.valid, "protocol=\"status\",kind=\"query\""] == 4)
            #expect(scrape[.valid, "protocol=\"status\",kind=\"request\""] == 8)
            #expect(scrape[.handled, "protocol=\"status\",kind=\"registration\",outcome=\"refused_version\""] == 1)
            #expect(scrape[.reports, "result=\"success\""] == 4)
            #expect(scrape[.reports, "result=\"not_registered\""] == 4)
            #expect(scrape[.notificationsQueued] == 4)
            #expect(scrape[.notificationsEnded, "outcome=\"accepted\""] == 4)
            #expect(scrape.sum(.posts, "class=\"accepted\"") == Double(node.gorush.attempts))
            #expect(scrape[.registrations, "protocol=\"status\",platform=\"apn\",state=\"registered\""] == 1)
            #expect(scrape[.registrations, "protocol=\"status\",platform=\"none\",state=\"unregistered\""] == 0)
            #expect(scrape[.breaker, "endpoint=\"1\",state=\"closed\""] == 1)
            #expect(scrape[.certificateEnd, "endpoint=\"1\""] == 4_102_444_800)
            #expect(scrape[.ready] == 1)
            #expect((scrape[.residentMemory] ?? 0) > 1_000_000)
            #expect(abs((scrape[.startTime] ?? 0) - Date().timeIntervalSince1970) < 3600)
            #expect(scrape[.processorTime] ?? 0 > 0)
            #expect(scrape[.openFiles] ?? 0 > 3)
            #expect(abs((scrape[.relayLastMessage] ?? 0) - Date().timeIntervalSince1970) < 300)
        }
    }

    @Test("Latencies are recorded for each stage, from receipt and from the sender's timestamp")
    func latencies() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            try await traffic(node, rounds: 2)
            let samples = try await node.scrape().samples
            func count(_ metric: Metric, _ stage: String, _ kind: String) -> Double? {
                samples["\(metric.name)_count{protocol=\"status\",stage=\"\(stage)\",kind=\"\(kind)\"}"]
            }
            for (metric, stages) in [
                (Metric.sinceReceipt, ["valid", "durable", "answered"]), (.sinceSent, ["received", "valid", "durable", "answered"]),
            ] {
                for stage in stages {
                    #expect(count(metric, stage, "registration") == 2, "\(metric) \(stage)")
                    #expect(count(metric, stage, "request") == 4, "\(metric) \(stage)")
                    #expect(count(metric, stage, "query") == (stage == "durable" ? nil : 2), "\(metric) \(stage)")
                }
                #expect(count(metric, "accepted", "request") == 2)
            }
            #expect(count(.sinceReceipt, "received", "request") == nil)
            #expect(samples["\(Metric.postTime.name)_count"] == Double(node.gorush.attempts))
        }
    }

    @Test("promtool accepts the output, and every series is declared")
    func format() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            try await traffic(node, rounds: 1)
            let plain = try await node.get("/metrics")
            #expect(plain.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            let text = String(decoding: plain.body, as: UTF8.self)
            let lint = try await ExternalTool.run("promtool", ["check", "metrics"], input: text)
            #expect(lint.status == 0)
            #expect(lint.output + lint.errors == "")

            expectListed(Scrape(text))
        }
    }

    /// Every label value is a case of its type, so no key can be among them.
    private func expectListed(_ scrape: Scrape) {
        for series in scrape.samples.keys {
            let name = series.prefix { $0 != "{" }
            guard let metric = NodeAssembly.metrics.metric(ofSeries: String(name)) else {
                Issue.record("\(series) is not on the list")
                continue
            }
            let pairs = series.dropFirst(name.count).dropFirst().dropLast().split(separator: ",").map { $0.split(separator: "=") }
            for pair in pairs where pair[0] != "le" {
                let label = metric.labels.first { $0.labelName == pair[0] }
                #expect(label?.isValue(String(pair[1].dropFirst().dropLast())) == true, "\(series)")
            }
        }
    }

    @Test("Scrapes under load are complete, and counters never decrease")
    func underLoad() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            let isDone = Flag()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for index in 0..<4_000 {
                        node.network.publish(
                            WakuMessage(payload: [UInt8(index & 255)], contentTopic: ContentTopic(rawValue: "/o/1/t/p"), timestamp: .now()),
                            on: .statusDefault)
                        if index.isMultiple(of: 100) { await Task.yield() }
                    }
                    try await self.traffic(node, rounds: 10)
                    isDone.raise()
                }
                group.addTask {
                    var last: [String: Double] = [:]
                    var count = 0
                    while !isDone.isRaised || count == 0 {
                        let scrape = try await node.scrape()
                        for (series, value) in scrape.samples where series.contains("_total") || series.contains("_bucket") {
                            #expect(value >= last[series] ?? 0, "\(series)")
                        }
                        last = scrape.samples
                        count += 1
                    }
                }
                try await group.waitForAll()
            }
            let end = try await node.scrape()
            #expect(end[.received] == end.sum(.foreign) + end.sum(.ours))
        }
    }

    @Test("An unreachable gorush shows in the metrics of posts, breaker, outbox and reports")
    func outage() async throws {
        fixture.gorush.answer(.failed(retryAfter: nil))
        try await fixture.withNode(configure: {
            serving(&$0)
            $0.awaitLimit = .milliseconds(200)
        }) { node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == .internalError)
            try await node.wait { node.count(.gorushOpened) > 0 }
            let scrape = try await node.scrape()
            #expect(scrape.sum(.posts, "class=\"failed\"") >= 3)
            #expect(scrape.sum(.posts, "class=\"accepted\"") == 0)
            #expect(scrape[.breaker, "endpoint=\"1\",state=\"closed\""] == 0)
            #expect(scrape[.breakerOpened] ?? 0 >= 1)
            #expect(scrape[.outbox] == 1)
            #expect(scrape[.outboxAge] ?? 0 > 0)
            #expect(scrape[.reports, "result=\"internal_error\""] == 1)
            #expect(scrape[.ready] == 0)
        }
    }
}

private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    var isRaised: Bool { value.load(ordering: .relaxed) }
    func raise() { value.store(true, ordering: .relaxed) }
}

extension MetricLabel {
    static func isValue(_ text: String) -> Bool {
        self == VersionLabel.self ? VersionLabel(rawValue: text) != nil : allCases.contains { $0.labelValue == text }
    }
}
