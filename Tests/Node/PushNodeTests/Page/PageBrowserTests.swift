import NodeAPI
import CurlClient
import Foundation
import Delivery
import LoopbackRelay
import NodeAssembly
import PushClient
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import NodeMetrics
@testable import PushNode

@Suite("The status page, in a browser", .serialized, .timeLimit(.minutes(10)))
struct PageBrowserTests {
    let fixture: NodeFixture
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    private func serving(_ configuration: inout ServerConfiguration) {
        configuration.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
        configuration.awaitLimit = .milliseconds(500)
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
            try await eventually { try await browser.text(health).contains("gorush: unavailable, 1 waiting") }
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

    @Test("It finds a registrant by key and a notification by id, without sending a key or putting one into an address")
    func search() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == nil)
            let browser = try await Browser()
            try await browser.look(width: 390, height: 900, isDark: false)
            try await browser.open(url: try await node.url + "/")
            _ = try await browser.text(
                "(window.sent = [], window.plain = fetch, window.fetch = (url, options) => { sent.push(url + ' ' + (options.body || '')); return plain(url, options); })"
            )
            @Sendable func found(_ text: String) async throws -> String {
                _ = try await browser.text(
                    "(document.getElementById('found').replaceChildren(), document.getElementById('wanted').value = '\(text)')")
                _ = try await browser.text("document.querySelector('#search form').requestSubmit()")
                try await eventually { try await browser.text("document.getElementById('found').textContent") != "" }
                return try await browser.text("document.getElementById('found').textContent")
            }
            let key = bob.identity.publicKey
            for form in [key.uncompressed, key.compressed] {
                #expect(
                    try await found("0x" + hexString(form)).contains("1 device registered, 0 with a token in doubt; 0 notifications wait"))
            }
            let sent = try await browser.text("sent.filter(one => one.startsWith('search ')).join()")
            let (hash, other) = (KeyHash(of: key).hex, V01.KeyHash(of: key).hex)
            #expect(sent == [1, 2].map { _ in #"search {"registrant":["\#(hash)","\#(other)"]}"# }.joined(separator: ","))
            #expect(try await found(hash).contains("1 device registered"))
            #expect(try await found(hexString(PrivateKey.generate().publicKey.compressed)).contains("no device is registered"))
            #expect(try await found("bob").contains("neither a public key nor a key hash nor a notif_id"))
            let id = try #require(node.gorush.accepted.first).id
            #expect(try await found(id).contains("accepted at "))
            #expect(try await found(String(repeating: "0", count: 32)).contains("nothing: it was accepted more than 24 hours ago"))
            let addresses = try await browser.text("performance.getEntries().map(entry => entry.name).join() + location.href").lowercased()
            #expect(!addresses.contains(hexString(key.compressed.dropFirst())) && !addresses.contains(hash))
            #expect(try await browser.text("document.documentElement.scrollWidth <= 390") == "true")
        }
    }

    @Test("Searches from other machines, proxies and pages are refused, and so are invalid ones")
    func searchRefusals() async throws {
        try await fixture.withNode(configure: serving) { node async throws in
            let url = try await node.url
            let question = #"{"notification":"00000000000000000000000000000000"}"#
            @Sendable func status(_ body: String, _ headers: [(String, String)] = []) async throws -> Int {
                try await CurlClient().send(
                    HTTPRequest(method: "POST", url: url + "/search", headers: headers, body: Array(body.utf8), timeout: .seconds(60))
                ).status
            }
            #expect(try await status(question) == 200)
            #expect(try await status(question, [("Origin", url)]) == 200)
            for headers in [
                ("Origin", "https://attacker.example"), ("Origin", "null"), ("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=x"),
                ("Via", "1.1 proxy"), ("X-Real-IP", "192.0.2.1"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "node.example"),
            ] {
                #expect(try await status(question, [headers]) == 403, "\(headers)")
            }
            #expect(try await status("{}") == 400)
            #expect(try await status(String(repeating: " ", count: 1025) + question) == 413)
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

    @Test("Several nodes and a flood: it shows the state and where the remedy is, and fits each window")
    func scenes() async throws {
        let browser = try await Browser()
        var (several, flooded) = (PageFigures(), PageFigures())
        several.cluster = .sample
        var log = AlarmLog()
        _ = log.raise(.underAttack, "350 messages in a minute", at: flooded.time)
        flooded.alarms = log.alarms
        for (status, title, state) in [(several, "Healthy", "health good"), (flooded, "Working, with warnings", "health warn")] {
            let page = "data:text/html;base64," + Data(PageDocument(status: status).text.utf8).base64EncodedString()
            for width in [390, 1280] {
                try await browser.look(width: width, height: 900, isDark: width == 390)
                try await browser.open(url: page)
                #expect(try await browser.text("document.querySelector('.health h2').textContent") == title)
                #expect(try await browser.text("document.querySelector('.health').className") == state)
                #expect(try await browser.text("document.documentElement.scrollWidth <= \(width)") == "true", "\(title), \(width)")
            }
        }
        #expect(try await browser.text("document.querySelector('.health li span').textContent").contains("Troubleshooting"))
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
