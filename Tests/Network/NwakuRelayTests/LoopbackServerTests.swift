import CurlClient
import LoopbackRelay
import LoopbackServer
import Testing
import Core
import Waku

@testable import NwakuRelay

/// The loopback node rejects the same requests as a real one, so that code that works with it works with a real node.
@Suite(.timeLimit(.minutes(5))) struct LoopbackServerTests {
    private static let subscriptions = "/relay/v1/subscriptions"
    private static let messages = "/relay/v1/messages/%2Fwaku%2F2%2Frs%2F16%2F32"
    private static let good = #"{"payload": "AQ==", "contentTopic": "/a/1/b/proto", "timestamp": 1800000000123456789}"#

    private func send(
        _ method: String, _ path: String, _ body: String? = nil, contentType: String = "application/json", port: Int
    ) async throws -> (Int, String) {
        let request = HTTPRequest(
            method: method, url: "http://127.0.0.1:\(port)\(path)", headers: body == nil ? [] : [("Content-Type", contentType)],
            body: body.map { Array($0.utf8) }, connectTimeout: .seconds(60), timeout: .seconds(60))
        let response = try await client.send(request)
        return (response.status, String(decoding: response.body, as: UTF8.self))
    }

    private func status(
        _ method: String, _ path: String, _ body: String? = nil, contentType: String = "application/json", port: Int
    ) async throws -> Int {
        try await send(method, path, body, contentType: contentType, port: port).0
    }

    @Test func answersAsANodeDoes() async throws {
        try await withLoopback(LoopbackNetwork()) { port async throws in
            #expect(try await send("GET", Self.messages, port: port) == (404, ""))
            #expect(try await status("POST", Self.messages, Self.good, port: port) == 400)
            #expect(try await send("POST", Self.subscriptions, #"["/waku/2/rs/16/32"]"#, port: port) == (200, "OK"))
            #expect(try await send("POST", Self.subscriptions, #"["/waku/2/rs/16/32"]"#, port: port) == (200, "OK"))
            #expect(try await send("POST", Self.messages, Self.good, contentType: "text/plain; charset=utf-8", port: port) == (200, "OK"))
            let (code, body) = try await send("GET", Self.messages, port: port)
            #expect(code == 200)
            #expect(body.contains("1800000000123456789"))
            #expect(try await send("GET", Self.messages, port: port) == (200, "[]"))
            #expect(try await send("DELETE", Self.subscriptions, #"["/waku/2/rs/16/32"]"#, port: port) == (200, "OK"))
            #expect(try await status("GET", Self.messages, port: port) == 404)
            #expect(try await status("GET", "/filter/v2/messages", port: port) == 400)
            let health = try await makeAPI(port: port).health()
            #expect(health.isReady)
        }
    }

    /// A page in the operator's browser can send these requests to any address, with a body of type text/plain, but can't read the answers.
    @Test(arguments: [
        ("Origin", "http://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"),
    ])
    func pagesInBrowsersAreRefused(header: String, value: String) async throws {
        let network = LoopbackNetwork()
        try await withLoopback(network) { port async throws in
            try await makeAPI(port: port).subscribe(to: [.statusDefault])
            try await makeAPI(port: port).publish(message(1), on: .statusDefault)
            for (method, path, body) in [("POST", Self.messages, Self.good), ("GET", Self.messages, nil)] {
                let request = HTTPRequest(
                    method: method, url: "http://127.0.0.1:\(port)\(path)", headers: [(header, value), ("Content-Type", "text/plain")],
                    body: body.map { Array($0.utf8) }, timeout: .seconds(60))
                #expect(try await client.send(request).status == 403)
            }
            #expect(try await makeAPI(port: port).messages(on: .statusDefault).messages.map(\.message.payload) == [Array("1".utf8)])
        }
    }

    @Test(arguments: [
        "", "[]", "7", #"{"payload": "", "contentTopic": "/a"}"#, #"{"payload": "AQ==", "contentTopic": ""}"#, #"{"payload": "AQ=="}"#,
        #"{"payload": "?", "contentTopic": "/a"}"#, #"{"payload": "AQ==", "contentTopic": "/a", "timestamp": "now"}"#,
        #"{"payload": "AQ==", "contentTopic": "/a", "ephemeral": 1}"#,
        #"{"payload": "AQ==", "contentTopic": "/a", "meta": "\#(String(repeating: "AAAA", count: 22))"}"#,
        #"{"payload": "\#(String(repeating: "AAAA", count: (1 << 20) / 3))", "contentTopic": "/a"}"#,
    ])
    func refusesMessages(body: String) async throws {
        try await withLoopback(LoopbackNetwork()) { port async throws in
            try await makeAPI(port: port).subscribe(to: [.statusDefault])
            #expect(try await status("POST", Self.messages, body, port: port) == 400)
            let push = #"{"pubsubTopic": "/waku/2/rs/16/32", "message": \#(body)}"#
            #expect(try await status("POST", "/lightpush/v3/message", push, port: port) == 400)
        }
    }

    @Test func refusesOtherContentTypesTopicsAndSizes() async throws {
        try await withLoopback(LoopbackNetwork()) { port async throws in
            let topics = #"["/waku/2/rs/16/32"]"#
            #expect(try await status("POST", Self.subscriptions, topics, contentType: "application/cbor", port: port) == 400)
            #expect(try await status("POST", Self.subscriptions, #"["/waku/2/default-waku/proto"]"#, port: port) == 400)
            let endless = String(repeating: " ", count: (16 << 20) + 1)
            #expect(try await status("POST", Self.subscriptions, endless, port: port) == 413)
        }
    }

    @Test func findsByHashAndPagesByCursor() async throws {
        let network = LoopbackNetwork()
        let sent = (0..<5).map { message($0) }
        for message in sent { network.publish(message, on: .statusDefault) }
        let hash = sent[3].hash(on: .statusDefault)
        try await withLoopback(network) { port in
            let api = try makeAPI(port: port)
            let byHash = try await api.query(StoreQuery(hashes: [hash], includesMessages: false))
            #expect(byHash == StorePage(messages: [], hashes: [hash], cursor: nil))
            let first = try await api.query(StoreQuery(pubsubTopic: .statusDefault, pageSize: 3))
            #expect(first.messages.map(\.message) == Array(sent.prefix(3)))
            let second = try await api.query(StoreQuery(cursor: first.cursor, pageSize: 3))
            #expect(second.messages.map(\.message) == Array(sent.suffix(2)))
            #expect(second.cursor == nil)
            let newest = try await api.query(StoreQuery(pubsubTopic: .statusDefault, pageSize: 3, isAscending: false))
            #expect(newest.messages.map(\.message) == Array(sent.suffix(3)))
            let rest = try await api.query(StoreQuery(cursor: newest.cursor, pageSize: 3, isAscending: false))
            #expect(rest.messages.map(\.message) == Array(sent.prefix(2)) && rest.cursor == nil)
            let topics = (0..<11).map { ContentTopic(TopicTag(rawValue: $0)) }
            await #expect { try await api.query(StoreQuery(contentTopics: topics)) } throws: {
                ($0 as? NwakuAPIError)?.code == .status(400)
            }
            #expect(try await status("GET", "/store/v3/messages?cursor=xyz", port: port) == 400)
        }
    }

    @Test func saysThatAPortIsInUse() async throws {
        let network = LoopbackNetwork()
        try await withLoopback(network) { port in
            _ = await #expect { try await LoopbackServer(network: network, port: port).run() } throws: { error in
                let error = error as? LoopbackServerError
                return error?.code == .addressInUse && error?.message.contains("127.0.0.1:\(port)") == true
            }
        }
    }

    @Test func saysThatAnAddressIsNotThere() async throws {
        await #expect { try await LoopbackServer(network: LoopbackNetwork(), host: "192.0.2.1", port: 0).run() } throws: {
            ($0 as? LoopbackServerError)?.code == .addressUnavailable
        }
    }
}
