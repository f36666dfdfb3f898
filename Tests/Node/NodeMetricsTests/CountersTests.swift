@testable import NodeMetrics
import Testing

private enum ResultLabel: String, MetricLabel {
    static let labelName = "result"
    case heard, unheard
}

extension Metric {
    fileprivate static let echoes = Metric("echoes_total", ResultLabel.self, help: "Echoes.")
    fileprivate static let echoTime = Metric("echo_seconds", buckets: [0.1, 1], help: "How long echoes took.")
    fileprivate static let echoLevel = Metric("echo_level", ResultLabel.self, help: "How loud they are.")
}

extension Counter {
    fileprivate static let echoHeard = Counter("echo heard", .echoes, ResultLabel.heard)
    fileprivate static let echoUnheard = Counter("echo unheard", .echoes, ResultLabel.unheard)
    fileprivate static let echoLogged = Counter("echo logged")
}

extension ProtocolLabel {
    fileprivate static let echo = ProtocolLabel("echo")
}

extension MetricGroup {
    fileprivate static let echo = MetricGroup(
        metrics: [.echoes, .echoTime, .echoLevel], counters: [.echoHeard, .echoUnheard, .echoLogged])
}

@Suite("Counters")
struct CountersTests {
    @Test("Counts are read back, and are shown under their names")
    func counting() {
        let counters = Counters([.messages, .delivery])
        counters.add(.foreign, 5)
        counters.add(.foreign)
        counters.add(.droppedUnsigned, 2)
        counters.add(.postFailed)
        counters.add(.ours, 0)
        #expect(counters.snapshot == [.foreign: 6, .droppedUnsigned: 2, .postFailed: 1])
        #expect(counters.count(.foreign) == 6)
        let text = counters.registry.exposition()
        #expect(text.contains("\nwaku_push_messages_foreign_total 6\n"))
        #expect(text.contains("\nwaku_push_messages_dropped_total{stage=\"opening\",reason=\"unsigned\"} 2\n"))
        #expect(text.contains("\nwaku_push_messages_ours_total 0\n"))
    }

    @Test("A module declares counters and metrics of its own, which are shown as 0 from the start")
    func ownDeclarations() {
        let counters = Counters([.echo])
        #expect(counters.declared.map(\.name) == ["echo heard", "echo unheard", "echo logged"])
        let start = counters.registry.exposition()
        #expect(start.contains("# HELP echoes_total Echoes.\n# TYPE echoes_total counter\n"))
        #expect(start.contains("\nechoes_total{result=\"heard\"} 0\nechoes_total{result=\"unheard\"} 0\n"))
        #expect(start.contains("\necho_seconds_count 0\n"))
        counters.add(.echoHeard, 3)
        counters.add(.echoLogged)
        counters.increment(.echoes, ResultLabel.unheard)
        counters.record(.milliseconds(500), in: .echoTime)
        counters.registry.set(.echoLevel, ResultLabel.heard, to: 7)
        let text = counters.registry.exposition()
        #expect(text.contains("\nechoes_total{result=\"heard\"} 3\nechoes_total{result=\"unheard\"} 1\n"))
        #expect(text.contains("\necho_seconds_bucket{le=\"0.1\"} 0\necho_seconds_bucket{le=\"1.0\"} 1\n"))
        #expect(text.contains("\necho_level{result=\"heard\"} 7.0\n"))
        #expect(!text.contains("logged"))
        #expect(counters.snapshot == [.echoHeard: 3, .echoUnheard: 1, .echoLogged: 1])
    }

    @Test("A counter of a group that was not passed has no count")
    func otherGroup() {
        let counters = Counters([.answers])
        #expect(counters.count(.echoHeard) == 0)
        #expect(counters.count(.foreign) == 0)
        #expect(counters.snapshot.isEmpty)
    }

    @Test("Counters keep their own counts apart from those of another node in the process")
    func twoNodes() {
        let (first, second) = (Counters([.messages, .echo]), Counters([.echo, .messages]))
        first.add(.foreign, 2)
        second.add(.echoHeard, 3)
        #expect(first.snapshot == [.foreign: 2])
        #expect(second.snapshot == [.echoHeard: 3])
    }

    @Test("Labels are numbered, and accept valid texts only")
    func places() {
        #expect(VersionLabel(rawValue: "0.2.0~dev+1a2b")?.rawValue == "0.2.0~dev+1a2b")
        for text in ["", "1 0", "1\"", String(repeating: "1", count: 65)] { #expect(VersionLabel(rawValue: text) == nil) }
        #expect(KindLabel.allCases.map(\.place) == [0, 1, 2])
        #expect(ProtocolLabel("status") == .status && ProtocolLabel(rawValue: "undeclared") == nil)
        let labels: Set<ProtocolLabel> = [.status, .other, .shared]
        #expect(Set(ProtocolLabel.allCases).isSuperset(of: labels))
    }

    @Test("Each protocol's messages are counted and measured under its own label")
    func protocols() {
        let counters = Counters([.messages], protocols: [.status, .echo])
        func times(_ label: ProtocolLabel) -> MessageTimes { MessageTimes(received: .now, delay: .seconds(1), protocol: label) }
        counters.opened([(kind: .query, times: times(.status)), (kind: .query, times: times(.echo))], others: 0)
        counters.reached(.answered, .query, times: times(.echo))
        counters.held(.query, for: .seconds(1), times(.echo))
        // Of a protocol that the node does not speak nothing is shown.
        counters.opened([(kind: .query, times: times(.other))], others: 0)
        let text = counters.registry.exposition()
        for label in ["status", "echo"] {
            #expect(text.contains("\nwaku_push_messages_valid_total{protocol=\"\(label)\",kind=\"query\"} 1\n"))
        }
        let answered = "waku_push_message_since_receipt_seconds_count"
        #expect(text.contains("\n\(answered){protocol=\"echo\",stage=\"answered\",kind=\"query\"} 1\n"))
        #expect(text.contains("\n\(answered){protocol=\"status\",stage=\"answered\",kind=\"query\"} 0\n"))
        #expect(text.contains("\nwaku_push_reply_delay_seconds_count{protocol=\"echo\",kind=\"query\"} 1\n"))
        #expect(!text.contains("protocol=\"other\""))
        #expect(counters.validCounts == [0, 2, 0])
    }

    @Test("A protocol without Waku messages has the latencies of its registrations and requests only")
    func withoutWaku() {
        let counters = Counters([.messages], protocols: [.status, .echo], withoutWaku: [.echo])
        let times = MessageTimes(received: .now, delay: nil, protocol: .echo)
        counters.reached(.durable, .request, times: times)
        counters.reached(.accepted, .request, times: times)
        counters.reached(.answered, .registration, times: times)
        // Not measured.
        counters.reached(.answered, .query, times: times)
        let lines = counters.registry.exposition().split(separator: "\n").filter {
            $0.contains("protocol=\"echo\"") && !$0.contains("_bucket") && !$0.contains("_sum")
        }
        let series = "waku_push_message_since_receipt_seconds_count{protocol=\"echo\","
        #expect(
            Set(lines) == [
                "\(series)stage=\"durable\",kind=\"registration\"} 0", "\(series)stage=\"answered\",kind=\"registration\"} 1",
                "\(series)stage=\"durable\",kind=\"request\"} 1", "\(series)stage=\"accepted\",kind=\"request\"} 1",
            ])
        #expect(counters.validCounts == [0, 0, 0] && counters.answerTimes.last == 1)
    }

    @Test("A message whose timestamp is long ago counts as an hour old")
    func oldTimestamp() {
        let counters = Counters([.messages])
        let times = [Duration.seconds(3600), .seconds(50 * 365 * 86_400)].map { MessageTimes(received: .now, delay: $0) }
        counters.opened(times.map { times -> (kind: KindLabel, times: MessageTimes?) in (.query, times) }, others: 0)
        let received = counters.registry.histogram(.sinceSent, ProtocolLabel.status, StageLabel.received, KindLabel.query)
        #expect(received.cumulativeCounts.last == 2 && received.seconds == 7200)
    }

    @Test("Unknown HTTP statuses have the label other")
    func statuses() {
        #expect(StatusLabel(nil).rawValue == "none")
        #expect(StatusLabel(503).rawValue == "503")
        #expect(StatusLabel(299).rawValue == "other")
        #expect(StatusLabel(-1).rawValue == "other")
    }

    @Test("Percentiles of the values added in between are upper bounds of buckets")
    func percentiles() throws {
        let counters = Counters([.messages])
        let old = counters.answerTimes
        #expect(counters.percentiles(from: old, to: old) == nil)
        func answer(_ duration: Duration, _ count: Int) {
            for _ in 0..<count {
                counters.reached(.answered, .query, times: MessageTimes(received: .now - duration, delay: nil))
            }
        }
        answer(.milliseconds(1200), 90)
        answer(.seconds(100), 10)
        let found = try #require(counters.percentiles(from: old, to: counters.answerTimes))
        #expect(found.half == 2)
        #expect(found.most == .infinity)
    }
}
