import CurlClient
import Foundation
import Gorush
import LoopbackRelay
import NodeMetrics
import PushClient
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("The status page, as it is written")
struct StatusPageTests {
    @Test("What is interpolated is text, whatever it is")
    func escaping() {
        let hostile = "<script>alert('x')</script> & \"more\"\u{0}\n"
        let page: HTML = "<p title=\"\(hostile)\">\(hostile)</p>\(["<i>\(1)</i>" as HTML])"
        let escaped = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;\u{FFFD}\n"
        #expect(page.text == "<p title=\"\(escaped)\">\(escaped)</p><i>1</i>")
    }

    @Test("A relay's reason that is markup stays text, on the page and in JSON")
    func hostileReasons() throws {
        var status = StatusFigures()
        status.obstacles = ["relay: <img src=x onerror=alert(1)>"]
        status.relayObstacle = "<b>bad</b>"
        status.gorushFailure = "</p><script>"
        status.breaker = .open
        status.storeFailure = "'\"&"
        status.alarms = {
            var log = AlarmLog()
            _ = log.raise(.relayDetached, "<i>x</i>", at: .now())
            return log.alarms
        }()
        let text = StatusPage(status: status).document.text
        for markup in ["<img", "<b>bad", "<i>x", "</p><script>", "'\"&"] { #expect(!text.contains(markup), "\(markup)") }
        #expect(text.contains("relay: &lt;img src=x onerror=alert(1)&gt;"))
        #expect(text.contains("NOT READY"))
        let json = try JSONSerialization.jsonObject(with: Data(status.json)) as? [String: Any]
        #expect(json?["ready"] as? Bool == false)
        #expect((json?["relay"] as? [String: Any])?["attached"] as? Bool == false)
        #expect((json?["alarms"] as? [[String: Any]])?.first?["reason"] as? String == "<i>x</i>")
    }

    @Test("Figures as they are read")
    func figures() {
        #expect([0, 7, 999, 1000, 1_234_567, -1000].map(\.grouped) == ["0", "7", "999", "1,000", "1,234,567", "-1,000"])
        #expect([0, 1023, 1536, 5 << 30].map(\.asBytes) == ["0 bytes", "1023 bytes", "1.5 KiB", "5.0 GiB"])
        #expect([0.0005, 0.025, 2, .infinity].map(\.asTime) == ["0.5 ms", "25 ms", "2 s", "more than 10 s"])
        #expect(
            [Duration.seconds(5), .seconds(600), .seconds(7500), .seconds(266_400)].map(\.inWords) == [
                "5 s", "10 min", "2 h 5 min", "3 d 2 h",
            ])
        #expect([0, 1, 1.5, 4, 7, 20, 21].map(StatusChart.niceTop) == [1, 1, 2, 5, 10, 20, 50])
        #expect(Timestamp(rawValue: 1_735_689_600_500_000_000).clock == "2025-01-01 00:00:00")
    }

    @Test("The charts go on to the present, without a last step that is too short to tell a rate, and forget what is old")
    func history() {
        func point(_ seconds: Int, _ received: Int) -> StatusHistory.Point {
            StatusHistory.Point(
                time: Timestamp(rawValue: 1_000_000_000_000) + .seconds(seconds), counts: [.received: received], valid: [0, 0, 0],
                waiting: 0,
                answerTimes: [])
        }
        var history = StatusHistory()
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
        #expect(history.points.count == StatusHistory.limit)
    }

}

@Suite("The status page, in a browser", .serialized, .timeLimit(.minutes(10)))
struct StatusBrowserTests {
    let fixture: NodeFixture
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    private func serving(_ configuration: inout NodeConfiguration) {
        configuration.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
        configuration.answerDeadline = .milliseconds(500)
    }

    private func step(_ name: String) -> String {
        "[...document.querySelectorAll('.flow li')].find(item => item.querySelector('span').textContent === '\(name)').querySelector('b').textContent"
    }

    @Test("It is served with what keeps everything else out, and is whole without scripts")
    func withoutScripts() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            #expect(try await node.register(bob) == nil)
            let page = try await node.get("/")
            #expect(page.status == 200)
            #expect(page.header("Content-Type") == "text/html; charset=utf-8")
            #expect(page.header("Cache-Control") == "no-store")
            #expect(page.header("X-Content-Type-Options") == "nosniff")
            let policy = try #require(page.header("Content-Security-Policy"))
            #expect(policy.hasPrefix("default-src 'none'; style-src 'sha256-"))
            #expect(!policy.contains("unsafe"))
            let text = String(decoding: page.body, as: UTF8.self)
            #expect(!text.contains("http://") && !text.contains("https://") && !text.contains(" style="))
            let status = try await node.get("/status.json")
            #expect(status.header("Cache-Control") == "no-store")
            let json = try #require(try JSONSerialization.jsonObject(with: Data(status.body)) as? [String: Any])
            #expect((json["registrations"] as? [String: Int])?["apn"] == 1)

            let browser = try await Browser()
            try await browser.runScripts(false)
            try await browser.open(url: try await node.url + "/")
            #expect(try await browser.text("document.querySelector('.health h2').textContent") == "Healthy")
            #expect(try await browser.text(step("Handled")) == "1")
            #expect(try await browser.text("document.querySelector('[data-live=registrations] .state').textContent") == "1 device")
            // The style is let in by its hash.
            #expect(try await browser.text("getComputedStyle(document.querySelector('.cards')).display") == "grid")
            #expect(try await browser.text("document.body.dataset.updates || 'none'") == "none")
        }
    }

    @Test("It follows what happens: messages, an outage of gorush, and its end")
    func live() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            let browser = try await Browser()
            try await browser.look(width: 1280, height: 900, isDark: false)
            try await browser.open(url: try await node.url + "/")
            try await waitFor { Int(try await browser.text("document.body.dataset.updates || 0")) ?? 0 > 0 }
            #expect(try await browser.text(step("Handled")) == "0")
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == nil)
            try await waitFor { try await browser.text(step("Handled")) == "2" }
            #expect(try await browser.text(step("Taken by gorush")) == "1")

            node.gorush.answer(.failed(retryAfter: nil))
            #expect(try await node.notify(bob) == .internalError)
            let health = "document.querySelector('[data-live=health]').textContent"
            try await waitFor { try await browser.text(health).contains("gorush: takes no notifications, 1 wait") }
            #expect(try await browser.text("document.title").hasPrefix("NOT READY"))
            #expect(try await browser.text("document.querySelector('[data-live=gorush] .state').className") == "state bad")
            #expect(
                try await browser.text("document.querySelector('[data-live=alarms]').textContent").contains("gorush takes no notifications")
            )

            node.gorush.answer(.accepted)
            try await waitFor { try await browser.text("document.querySelector('.health h2').textContent") == "Healthy" }
            #expect(try await browser.text(step("Taken by gorush")) == "2")
            #expect(try await browser.text("document.querySelector('[data-live=alarms] em') === null") == "true")
        }
    }

    /// `WAKU_PUSH_SCREENSHOTS=folder` keeps the pictures.
    @Test("It fits wide and narrow, light and dark, well and ill, and has nothing to hide at the side")
    func pictures() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            let browser = try await Browser()
            try await busyDay(node)
            for isIll in [false, true] {
                if isIll {
                    node.gorush.answer(.failed(retryAfter: nil))
                    for _ in 0..<3 { _ = try await node.notify(bob) }
                    try await Task.sleep(for: .seconds(6))
                }
                for (name, width, isDark) in [
                    ("wide-light", 1280, false), ("wide-dark", 1280, true), ("narrow-light", 390, false), ("narrow-dark", 390, true),
                ] {
                    try await browser.look(width: width, height: 900, isDark: isDark)
                    try await browser.open(url: try await node.url + "/")
                    #expect(try await browser.text("document.documentElement.scrollWidth <= \(width)") == "true", "\(name)")
                    let background = try await browser.text("getComputedStyle(document.documentElement).backgroundColor")
                    #expect(background == (isDark ? "rgb(14, 17, 22)" : "rgb(244, 245, 247)"), "\(name)")
                    let picture = try await browser.picture()
                    #expect(picture.count > 10_000)
                    if let folder = ProcessInfo.processInfo.environment["WAKU_PUSH_SCREENSHOTS"] {
                        try picture.write(to: URL(fileURLWithPath: "\(folder)/\(isIll ? "ill" : "well")-\(name).png"))
                    }
                }
            }
        }
    }

    /// Long enough for a few points in the charts.
    private func busyDay(_ node: RunningNode) async throws {
        #expect(try await node.register(bob) == nil)
        let isLong = ProcessInfo.processInfo.environment["WAKU_PUSH_SCREENSHOTS"] != nil
        let end = ContinuousClock.now + .seconds(isLong ? 60 : 11)
        var round = 0
        while ContinuousClock.now < end {
            round += 1
            for _ in 0..<(20 + 15 * (round % 5)) {
                node.network.publish(
                    WakuMessage(payload: [1], contentTopic: ContentTopic(rawValue: "/o/1/t/p"), timestamp: .now()), on: .statusDefault)
            }
            _ = try await node.notify(bob)
            if round.isMultiple(of: 3) { _ = try await node.register(TestClient(of: node.server), version: 1) }
            if round.isMultiple(of: 4) {
                _ = try await node.withClient { try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(60)) }
                let personal = ContentTopic(TopicTag(of: StatusTopics.personal(node.server)))
                node.network.publish(WakuMessage(payload: randomBytes(300), contentTopic: personal, timestamp: .now()), on: .statusDefault)
            }
            try await Task.sleep(for: .milliseconds(150 + 100 * (round % 4)))
        }
    }
}
