import Foundation
import NodeAPI
@testable import NodeMetrics
import Core
import Logging
import TestSupport
import Testing

@testable import PushNode

@Suite("The HTML of the status page")
struct PageTests {
    @Test("All interpolated values are escaped")
    func escaping() {
        let hostile = "<script>alert('x')</script> & \"more\"\u{0}\n"
        let page: HTML = "<p title=\"\(hostile)\">\(hostile)</p>\(["<i>\(1)</i>" as HTML])"
        let escaped = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;\u{FFFD}\n"
        #expect(page.text == "<p title=\"\(escaped)\">\(escaped)</p><i>1</i>")
    }

    @Test("A relay's reason that is markup stays text, on the page and in JSON")
    func hostileReasons() throws {
        var status = PageFigures()
        status.obstacles = [PageFigures.Obstacle("relay: <img src=x onerror=alert(1)>", remedy: "<u>restart</u>")]
        status.relayObstacle = "<b>bad</b>"
        status.gorushFailure = "</p><script>"
        status.breaker = .open
        status.storeFailure = "'\"&"
        status.alarms = {
            var log = AlarmLog()
            _ = log.raise(.relayDetached, "<i>x</i>", at: .now())
            return log.alarms
        }()
        let text = PageDocument(status: status).text
        for markup in ["<img", "<b>bad", "<i>x", "</p><script>", "'\"&"] { #expect(!text.contains(markup), "\(markup)") }
        #expect(text.contains("relay: &lt;img src=x onerror=alert(1)&gt;"))
        #expect(text.contains("NOT READY"))
        #expect(text.contains("<span>&lt;u&gt;restart&lt;/u&gt;</span>"))
        let json = try JSONSerialization.jsonObject(with: Data(status.json)) as? [String: Any]
        #expect(json?["ready"] as? Bool == false)
        #expect(json?["obstacles"] as? [String] == ["relay: <img src=x onerror=alert(1)>"])
        #expect(json?["remedies"] as? [String] == ["<u>restart</u>"])
        #expect((json?["relay"] as? [String: Any])?["attached"] as? Bool == false)
        #expect((json?["alarms"] as? [[String: Any]])?.first?["reason"] as? String == "<i>x</i>")
    }

    @Test("Devices of Web Push are counted, and not shown where there are none")
    func webPushDevices() throws {
        var status = PageFigures()
        status.add(PageFigures.Registrations(apn: 2, firebase: 1, huawei: 0, webPush: 0, inDoubt: 0, unregistered: 0))
        #expect(!PageDocument(status: status).text.contains("Web Push"))
        status.add(PageFigures.Registrations(apn: 0, firebase: 0, huawei: 0, webPush: 3, inDoubt: 0, unregistered: 0))
        let text = PageDocument(status: status).text
        #expect(text.contains("6 devices") && text.contains("Web Push</dt><dd>3</dd>"))
        let json = try JSONSerialization.jsonObject(with: Data(status.json)) as? [String: Any]
        #expect((json?["registrations"] as? [String: Int])?["webPush"] == 3)
    }

    @Test("Several nodes, their partitions, standbys and the last failover")
    func cluster() throws {
        var status = PageFigures()
        #expect(!PageDocument(status: status).text.contains("data-live=\"cluster\""))
        #expect(!PageDocument(status: status).text.contains("posts those to the devices of its partitions"))
        status.elsewhere = PageFigures.Step(name: "Handled by other nodes", lately: 1, total: 2)
        #expect(PageDocument(status: status).text.contains("posts those to the devices of its partitions"))
        status.cluster = .sample
        let text = PageDocument(status: status).text
        for part in [
            "&lt;a&gt;", "this node, maintenance", "6 of 256 partitions have no owner", "standby &lt;s1&gt;",
            "streaming, sync, 1.5 KiB behind, 25 ms", "2025-01-01 00:00:00 UTC: node &lt;c&gt; was lost",
        ] { #expect(text.contains(part), "\(part)") }
        let json = try #require(JSONSerialization.jsonObject(with: Data(status.json)) as? [String: Any])
        let cluster = try #require(json["cluster"] as? [String: Any])
        #expect((cluster["nodes"] as? [[String: Any]])?.map { $0["partitions"] as? Int } == [100, 150])
        #expect(((cluster["standbys"] as? [[String: Any]])?.first)?["lagBytes"] as? Int == 1536)
        #expect(cluster["unownedPartitions"] as? Int == 6)

        let finding = NodeChecks.lease(failure: nil, status: status.cluster)
        #expect(finding.verdict == .warn && finding.text.contains("6 of 256 partitions have no owner"))
        #expect(NodeChecks.lease(failure: "no lease", status: status.cluster).verdict == .fail)
        #expect(NodeChecks.standbys(status.cluster)?.verdict == .ok)
        #expect(NodeChecks.standbys(nil) == nil)
    }

    @Test("Each protocol has a section with its lines, and so has JSON; one without lines has none")
    func protocols() throws {
        var status = PageFigures()
        status.protocols = [
            PageFigures.ProtocolLines(name: "silent", lines: []),
            PageFigures.ProtocolLines(name: "<Session>", lines: [("accounts", "7"), ("storage servers connected", "<3> of 4")]),
        ]
        let text = PageDocument(status: status).text
        #expect(
            text.contains(
                """
                <section class="protocol" data-live="protocol1"><h2>&lt;Session&gt;</h2>
                <dl><dt>accounts</dt><dd>7</dd><dt>storage servers connected</dt><dd>&lt;3&gt; of 4</dd></dl></section>
                """))
        #expect(!text.contains("data-live=\"protocol0\""))
        let json = try JSONSerialization.jsonObject(with: Data(status.json)) as? [String: Any]
        let protocols = try #require(json?["protocols"] as? [[String: Any]])
        #expect(protocols.map { $0["name"] as? String } == ["silent", "<Session>"])
        #expect((protocols[1]["lines"] as? [[String: String]])?.first == ["name": "accounts", "value": "7"])
    }

    @Test("A node without a relay does not say that messages come in, and counts devices of Huawei")
    func withoutRelay() {
        var status = PageFigures()
        status.hasRelay = false
        status.add(PageFigures.Registrations(apn: 0, firebase: 0, huawei: 0, webPush: 0, inDoubt: 0, unregistered: 0))
        let empty = PageDocument(status: status).text
        #expect(empty.contains("<li>The database works, gorush is available<br><span>no device is registered</span></li>"))
        #expect(!empty.contains("Messages come in") && !empty.contains("Huawei"))
        status.add(PageFigures.Registrations(apn: 0, firebase: 0, huawei: 2, webPush: 0, inDoubt: 0, unregistered: 0))
        let text = PageDocument(status: status).text
        #expect(text.contains("<li>The database works, gorush is available</li>"))
        #expect(text.contains("2 devices") && text.contains("<dt>Huawei</dt><dd>2</dd>"))
    }

    @Test("A node without gorush does not say that gorush is available")
    func withoutGorush() {
        var status = PageFigures()
        status.hasGorush = false
        let text = PageDocument(status: status).text
        #expect(text.contains("<p class=\"state good\">none</p>") && !text.contains("available"))
    }

    @Test("A gorush that does not answer is shown as failing, although no post has failed yet")
    func gorushThatDoesNotAnswer() {
        var status = PageFigures()
        #expect(PageDocument(status: status).text.contains("<p class=\"state good\">available</p>"))
        status.gorushFailure = "no connection"
        #expect(PageDocument(status: status).text.contains("<p class=\"state bad\">fails</p><p class=\"note\">no connection</p>"))
    }

    @Test("The reply delay is named beside the time to answer, as it is not part of it")
    func replyDelay() {
        var status = PageFigures()
        status.answerTimes = (0.025, 0.1)
        #expect(!PageDocument(status: status).text.contains("--reply-delay"))
        status.replyDelay = .milliseconds(500)
        #expect(
            PageDocument(status: status).text.contains(
                "answers leave no earlier than 500 ms after the receipt (--reply-delay)"))
    }

    @Test("An alarm names the section about it, and links to it where the address of the documentation is known")
    func articles() {
        var status = PageFigures()
        status.time = .now()
        var log = AlarmLog()
        _ = log.raise(.storeFails, "disk full", at: status.time)
        status.alarms = log.alarms
        let named = PageDocument(status: status).text
        #expect(named.contains("remedy: article Troubleshooting, section \u{201C}The database, the disk, the machine\u{201D}"))
        #expect(!named.contains("/troubleshooting#"))
        status.documentation = "https://docs.example/\"x"
        #expect(
            PageDocument(status: status).text.contains(
                "<a href=\"https://docs.example/&quot;x/troubleshooting#The-database-the-disk-the-machine\" rel=\"noreferrer\">"))
    }

    @Test("The article has each alarm in the section that the page names", arguments: AlarmKind.allCases)
    func sections(kind: AlarmKind) throws {
        let article = Repository.file("Sources/Node/PushNode/PushNode.docc/Troubleshooting.md")
        let sections = try String(contentsOf: article, encoding: .utf8).components(separatedBy: "\n## ")
        let section = try #require(sections.first { $0.hasPrefix(kind.section.rawValue + "\n") })
        #expect(section.contains("alarm `\(kind.rawValue)`"))
    }

    @Test("A new node shows that no message was received, or that no device is registered, instead of that it works")
    func newNode() {
        var status = PageFigures()
        status.messages = [PageFigures.Step(name: "Received, from everyone", lately: 0, total: 0)]
        let first = PageDocument(status: status).text
        #expect(first.contains("No message has come in yet") && first.contains("<dt>last message</dt><dd>none yet</dd>"))
        status.messages = [PageFigures.Step(name: "Received, from everyone", lately: 1, total: 1)]
        status.add(PageFigures.Registrations(apn: 0, firebase: 0, huawei: 0, webPush: 0, inDoubt: 0, unregistered: 3))
        #expect(PageDocument(status: status).text.contains("no device is registered: clients need the public key"))
        status.add(PageFigures.Registrations(apn: 1, firebase: 0, huawei: 0, webPush: 0, inDoubt: 0, unregistered: 0))
        #expect(!PageDocument(status: status).text.contains("no device is registered: clients need"))
    }

    @Test("Warnings and errors are counted by message, the latest first, and bounded")
    func errorTally() throws {
        var tally = ErrorTally()
        let start = Timestamp(rawValue: 1_735_689_600_000_000_000)
        tally.add("failed to store message", reason: "disk full", count: 3, at: start)
        tally.add("peer <b>lost</b>", reason: nil, count: 1, at: start + .seconds(1))
        tally.add("failed to store message", reason: "<i>", count: 4, at: start + .seconds(2))
        #expect(tally.entries.map(\.count) == [7, 1])
        var status = PageFigures()
        #expect(PageDocument(status: status).text.contains("None since the start."))
        status.errors = tally.entries
        let text = PageDocument(status: status).text
        #expect(
            text.contains(
                "<tr><td>failed to store message<br><span>&lt;i&gt;</span></td><td class=\"number\">7</td><td class=\"number\"><time>2025-01-01 00:00:02"
            ))
        #expect(text.contains("peer &lt;b&gt;lost"))
        let json = try JSONSerialization.jsonObject(with: Data(status.json)) as? [String: Any]
        #expect((json?["errors"] as? [[String: Any]])?.map { $0["count"] as? Int } == [7, 1])
        for number in 0..<100 { tally.add("\(number)", reason: nil, count: 1, at: start) }
        #expect(tally.entries.count == ErrorTally.limit && tally.entries.first?.message == "99")
    }

    @Test("A logger counts its warnings and errors, and writes all records as before")
    func countingLogger() {
        let (errors, log) = (RecentErrors(), RecordedLog())
        let logger = errors.counting(log.logger)
        logger.info("node started")
        logger.warning("relay detached", metadata: ["reason": "no answer"])
        logger.error("failed to store message", metadata: ["count": .stringConvertible(5), "reason": "disk full"])
        #expect(errors.all.map(\.message) == ["failed to store message", "relay detached"])
        #expect(errors.all.map(\.count) == [5, 1] && errors.all.map(\.reason) == ["disk full", "no answer"])
        #expect(log.messages == ["node started", "relay detached", "failed to store message"])
    }

    @Test("Searches by hashes of a registrant or a notification id; others are refused")
    func searchQuestions() {
        func question(_ text: String) -> SearchQuestion? { SearchQuestion(parsing: Array(text.utf8)) }
        let (long, short) = (String(repeating: "0a", count: 64), String(repeating: "0b", count: 32))
        let hashes = [[UInt8](repeating: 10, count: 64), [UInt8](repeating: 11, count: 32)]
        #expect(question(#"{"registrant":["\#(long)","\#(short)"]}"#) == .registrant(hashes))
        #expect(question(#"{"notification":"x"}"#) == .notification("x"))
        for text in [
            "", "[]", "{}", #"{"registrant":[]}"#, #"{"registrant":["0a"]}"#, #"{"registrant":["\#(long)","zz"]}"#,
            #"{"registrant":"\#(long)"}"#,
            #"{"registrant":["\#(long)","\#(long)","\#(long)"]}"#, #"{"registrant":["\#(long)"],"notification":"x"}"#,
            #"{"notification":7}"#,
        ] { #expect(question(text) == nil, "\(text)") }
    }

    @Test("Formatting of figures")
    func figures() {
        #expect([0, 7, 999, 1000, 1_234_567, -1000].map(\.grouped) == ["0", "7", "999", "1,000", "1,234,567", "-1,000"])
        #expect([0, 1023, 1536, 5 << 30].map(\.asBytes) == ["0 bytes", "1023 bytes", "1.5 KiB", "5.0 GiB"])
        #expect([0.0005, 0.025, 2, .infinity].map(\.asTime) == ["0.5 ms", "25 ms", "2 s", "more than 10 s"])
        #expect(
            [Duration.seconds(5), .seconds(600), .seconds(7500), .seconds(266_400)].map(\.inWords) == [
                "5 s", "10 min", "2 h 5 min", "3 d 2 h",
            ])
        #expect([0, 1, 1.5, 4, 7, 20, 21].map(PageChart.niceTop) == [1, 1, 2, 5, 10, 20, 50])
        #expect(Timestamp(rawValue: 1_735_689_600_500_000_000).clock == "2025-01-01 00:00:00")
    }

    @Test("The charts extend to the present, without a last step that is too short to tell a rate, and forget what is old")
    func history() {
        func point(_ seconds: Int, _ received: Int) -> PageHistory.Point {
            PageHistory.Point(
                time: Timestamp(rawValue: 1_000_000_000_000) + .seconds(seconds), counts: [.received: received], valid: [0, 0, 0],
                waiting: 0,
                answerTimes: [])
        }
        var history = PageHistory()
        history.extend(to: point(0, 0))
        history.extend(to: point(1, 3))
        #expect(history.rates { $0.count(.received) } == [3])
        history.extend(to: point(5, 10))
        history.extend(to: point(6, 20))
        #expect(history.points.map { $0.count(.received) } == [0, 3, 20])
        // A clock that was set back.
        history.add(point(2, 30))
        #expect(history.rates { $0.count(.received) } == [3, 3.4, 0])
        for index in 0..<500 { history.add(point(10 + index, 0)) }
        #expect(history.points.count == PageHistory.limit)
    }
}

extension ClusterStatus {
    /// Two nodes and a standby, after a failover.
    static var sample: ClusterStatus {
        func node(_ name: String, isSelf: Bool, _ partitions: Int) -> Node {
            Node(name: name, state: "live", isSelf: isSelf, secondsSinceRenewal: 1, partitions: partitions, isMaintainer: isSelf)
        }
        return ClusterStatus(
            nodes: [node("<a>", isSelf: true, 100), node("b", isSelf: false, 150)], partitionCount: 256, unownedPartitions: 6,
            standbys: [Standby(name: "<s1>", state: "streaming", sync: "sync", lagBytes: 1536, lagSeconds: 0.025)],
            standbysProblem: nil, lastFailover: Failover(time: 1_735_689_600, text: "node <c> was lost"))
    }
}
