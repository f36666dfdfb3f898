import NodeAPI
import CurlClient
import Foundation
import Delivery
import LoopbackRelay
import NodeAssembly
import NodeMetrics
import PushClient
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

@Suite("The status page, in a browser", .serialized, .timeLimit(.minutes(10)))
struct StatusBrowserTests {
    let fixture: NodeFixture
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    private func serving(_ configuration: inout ServerConfiguration) {
        configuration.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
        configuration.answerDeadline = .milliseconds(500)
    }

    private func step(_ name: String) -> String {
        "[...document.querySelectorAll('.flow li')].find(item => item.querySelector('span').textContent === '\(name)').querySelector('b').textContent"
    }

    @Test("It is served with restrictive headers, and is complete without scripts")
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
            // The style is allowed by its hash.
            #expect(try await browser.text("getComputedStyle(document.querySelector('.cards')).display") == "grid")
            #expect(try await browser.text("document.body.dataset.updates || 'none'") == "none")
        }
    }

    @Test("It shows messages, an outage of gorush, and its end")
    func live() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            let browser = try await Browser()
            try await browser.look(width: 1280, height: 900, isDark: false)
            try await browser.open(url: try await node.url + "/")
            try await eventually { Int(try await browser.text("document.body.dataset.updates || 0")) ?? 0 > 0 }
            #expect(try await browser.text(step("Handled")) == "0")
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == nil)
            try await eventually { try await browser.text(step("Handled")) == "2" }
            #expect(try await browser.text(step("Accepted by gorush")) == "1")

            node.gorush.answer(.failed(retryAfter: nil))
            #expect(try await node.notify(bob) == .internalError)
            let health = "document.querySelector('[data-live=health]').textContent"
            try await eventually { try await browser.text(health).contains("gorush: takes no notifications, 1 wait") }
            #expect(try await browser.text("document.title").hasPrefix("NOT READY"))
            #expect(try await browser.text("document.querySelector('[data-live=gorush] .state').className") == "state bad")
            #expect(
                try await browser.text("document.querySelector('[data-live=alarms]').textContent").contains("gorush unavailable")
            )

            node.gorush.answer(.accepted)
            try await eventually { try await browser.text("document.querySelector('.health h2').textContent") == "Healthy" }
            #expect(try await browser.text(step("Accepted by gorush")) == "2")
            #expect(try await browser.text("document.querySelector('[data-live=alarms] em') === null") == "true")
        }
    }

    /// `WAKU_PUSH_SCREENSHOTS=folder` saves the screenshots.
    @Test("It fits wide and narrow windows in light and dark mode, healthy and failing, without horizontal overflow")
    func pictures() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            let browser = try await Browser()
            try await busyDay(node)
            for isIll in LongTests.areEnabled ? [false, true] : [false] {
                if isIll {
                    node.gorush.answer(.failed(retryAfter: nil))
                    for _ in 0..<3 { _ = try await node.notify(bob) }
                    try await Task.sleep(for: .seconds(6))
                }
                let looks = [
                    ("narrow-dark", 390, true), ("wide-light", 1280, false), ("wide-dark", 1280, true), ("narrow-light", 390, false),
                ]
                for (name, width, isDark) in looks.prefix(LongTests.areEnabled ? looks.count : 1) {
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
        let end = ContinuousClock.now + .seconds(isLong ? 60 : LongTests.areEnabled ? 11 : 1)
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
