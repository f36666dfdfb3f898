import Core
import CurlClient
import Delivery
import Foundation
import HTTPService
import PushReceiver
import PushReceiverHTTP
import Synchronization
import TestSupport
import Testing
import WakuCrypto

/// A receiver over TLS, and the node's own client of push services.
@Suite("The HTTP server of a Web Push receiver", .timeLimit(.minutes(5)))
struct PushReceiverServerTests {
    private let folder: TemporaryFolder
    private let key = VAPIDKey(.generate())
    private let certificate: TrialCertificate
    private let events = EventLog()

    private final class EventLog: Sendable {
        private let all = Mutex<[PushReceiverServer.Event]>([])

        @Sendable func add(_ event: PushReceiverServer.Event) { all.withLock { $0.append(event) } }

        var received: [[UInt8]] {
            all.withLock { $0.compactMap { if case .received(let notification) = $0 { notification.content } else { nil } } }
        }
        var refusals: [PushInbox.Refusal] {
            all.withLock { $0.compactMap { if case .refused(let refusal) = $0 { refusal } else { nil } } }
        }
    }

    init() throws {
        folder = try TemporaryFolder()
        certificate = try #require(TrialCertificate(hosts: ["127.0.0.1", "localhost"]))
        try certificate.authority.write(toFile: folder.path + "/authority.pem", atomically: true, encoding: .utf8)
    }

    private func withServer(
        tls: Bool = true, chain: (chain: [UInt8], key: [UInt8])? = nil, limits: PushInbox.Limits = PushInbox.Limits(),
        handle: (@Sendable (PushReceiverServer.Event) async throws -> Void)? = nil,
        _ body: (_ own: ReceiverSubscription, _ server: PushReceiverServer, _ port: UInt16) async throws -> Void
    ) async throws {
        let port = try freePort()
        let own = try #require(ReceiverSubscription(base: "https://127.0.0.1:\(port)", vapidKey: key.key.publicKey))
        let chain = chain ?? (chain: Array(certificate.certificate.utf8), key: Array(certificate.key.utf8))
        let server = try #require(
            PushReceiverServer(
                PushInbox([own], limits: limits), host: "127.0.0.1", port: Int(port), certificate: tls ? chain : nil,
                handle: handle ?? events.add))
        let (ready, isReady) = AsyncStream.makeStream(of: Int.self)
        let running = Task { try await server.run { isReady.yield($0) } }
        for await _ in ready { break }
        do {
            try await body(own, server, port)
        } catch {
            running.cancel()
            throw error
        }
        running.cancel()
        try await running.value
    }

    private var node: WebPushClient {
        let configuration = WebPushClient.configuration(
            trust: .file(path: folder.path + "/authority.pem"), allowed: ["127.0.0.0/8"].compactMap { AddressRange($0) })
        return WebPushClient(
            client: CurlClient(configuration: configuration), key: key, contact: "mailto:operator@example.org", timeout: .seconds(60))
    }

    private func message(_ own: PushSubscription, _ content: [UInt8] = Array("{}".utf8)) -> WebPushMessage {
        WebPushMessage(
            id: "1", subscription: own, content: WebPushContent(whole: content, truncated: [], urgency: .high),
            expires: .now() + .seconds(300))
    }

    @Test("The node's messages are received over TLS, of every size, on one connection")
    func received() async throws {
        try await withServer { own, _, _ in
            let node = node
            let contents = [0, 1, 1000, 3993].map { [UInt8](repeating: 0x20, count: $0) }
            for content in contents {
                let reply = await node.post(message(own.subscription, content))
                #expect(reply.answer == .accepted && reply.status == 201, "\(reply)")
            }
            #expect(events.received == contents && events.refusals.isEmpty)
        }
    }

    @Test("The certificates of authorities in between are sent, so that a client needs the root alone")
    func chain() async throws {
        func make(_ name: String, by issuer: String?, _ extensions: String...) async throws -> [UInt8] {
            let (key, file) = ("\(folder.path)/\(name).key", "\(folder.path)/\(name).pem")
            let signer = issuer.map { ["-CA", "\(folder.path)/\($0).pem", "-CAkey", "\(folder.path)/\($0).key"] } ?? []
            let made = try await ExternalTool.run(
                "openssl",
                [
                    "req", "-x509", "-subj", "/CN=\(name)", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-keyout", key, "-out", file,
                ] + signer + extensions.flatMap { ["-addext", $0] })
            #expect(made.status == 0, "\(made.errors)")
            return Array(try Data(contentsOf: URL(filePath: file)))
        }
        _ = try await make("authority", by: nil)
        let between = try await make("between", by: "authority")
        let leaf = try await make("leaf", by: "between", "subjectAltName=IP:127.0.0.1", "basicConstraints=critical,CA:FALSE")
        let key = Array(try Data(contentsOf: URL(filePath: folder.path + "/leaf.key")))
        for (chain, isTrusted) in [(leaf, false), (leaf + between, true)] {
            try await withServer(chain: (chain, key)) { own, _, _ in
                #expect((await node.post(message(own.subscription)).answer == .accepted) == isTrusted)
            }
        }
        let damaged = leaf + between.dropLast(40)
        #expect(
            PushReceiverServer(PushInbox([]), host: "127.0.0.1", port: 0, certificate: (damaged, key), handle: events.add) == nil)
    }

    @Test("Many messages at once are received, each once")
    func concurrent() async throws {
        try await withServer { own, _, _ in
            let node = node
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<100 {
                    group.addTask { #expect(await node.post(message(own.subscription, Array("\(number)".utf8))).answer == .accepted) }
                }
            }
            #expect(Set(events.received) == Set((0..<100).map { Array("\($0)".utf8) }) && events.received.count == 100)
        }
    }

    @Test("What the handler could not store, and a repetition while it is at work, is refused; the next message with this id is received")
    func notStored() async throws {
        let (arrivals, arrived) = AsyncStream.makeStream(of: CheckedContinuation<Void, any Error>.self)
        let handle = { @Sendable (_: PushReceiverServer.Event) in
            try await withCheckedThrowingContinuation { arrived.yield($0) }
        }
        try await withServer(handle: handle) { own, _, _ in
            let node = node
            let message = message(own.subscription, Array(#"{"v":1,"protocol":"status","id":"1"}"#.utf8))
            var waiting = arrivals.makeAsyncIterator()
            let first = Task { await node.post(message) }
            let handled = try #require(await waiting.next())
            #expect(await node.post(message).status == 503)
            handled.resume(throwing: CancellationError())
            #expect(await first.value.status == 503)
            let again = Task { await node.post(message) }
            try #require(await waiting.next()).resume()
            #expect(await again.value.status == 201)
            #expect(await node.post(message).status == 201)
        }
    }

    @Test("Unknown paths are answered 404, removed subscriptions 410, which the node takes as gone")
    func gone() async throws {
        try await withServer { own, server, port in
            let other = try #require(ReceiverSubscription(base: "https://127.0.0.1:\(port)", vapidKey: nil))
            #expect(await node.post(message(other.subscription)).status == 404)
            server.remove(own)
            let reply = await node.post(message(own.subscription))
            #expect(reply.answer == .gone && reply.status == 410)
            #expect(events.received.isEmpty && events.refusals == [.unknownPath, .removed])
        }
    }

    @Test("A server with another VAPID key is refused")
    func otherServer() async throws {
        try await withServer { own, _, _ in
            let configuration = WebPushClient.configuration(
                trust: .file(path: folder.path + "/authority.pem"), allowed: ["127.0.0.0/8"].compactMap { AddressRange($0) })
            let other = WebPushClient(
                client: CurlClient(configuration: configuration), key: VAPIDKey(.generate()), contact: "mailto:a@b.example")
            let reply = await other.post(message(own.subscription))
            #expect(reply.answer == .keyRefused && reply.status == 403)
        }
    }

    @Test("After a change of the node's key, subscriptions are posted to with the key that they were made for")
    func formerKey() async throws {
        try await withServer { own, _, _ in
            let configuration = WebPushClient.configuration(
                trust: .file(path: folder.path + "/authority.pem"), allowed: ["127.0.0.0/8"].compactMap { AddressRange($0) })
            let changed = WebPushClient(
                client: CurlClient(configuration: configuration), key: VAPIDKey(.generate()), formerKeys: [VAPIDKey(.generate()), key],
                contact: "mailto:a@b.example", timeout: .seconds(60))
            #expect(own.subscription.vapidKey == key.key.publicKey && changed.publicKeys.count == 3)
            #expect(await changed.post(message(own.subscription)).answer == .accepted)
            #expect(events.refusals.isEmpty)
            // A subscription that names no key: the keys are tried, and the accepted one is remembered.
            let unnamed = try #require(PushSubscription(endpoint: own.subscription.endpoint, keys: own.subscription.keys))
            #expect(await changed.post(message(unnamed)).answer == .accepted)
            #expect(events.refusals == [.wrongSignature, .wrongSignature])
            #expect(await changed.post(message(unnamed)).answer == .accepted)
            #expect(events.refusals.count == 2 && events.received.count == 3)
            // A key that the node does not have does not keep it from trying its own.
            let foreign = try #require(
                PushSubscription(
                    endpoint: own.subscription.endpoint, keys: own.subscription.keys, vapidKey: P256PrivateKey.generate().publicKey))
            #expect(await changed.post(message(foreign)).answer == .accepted)
        }
    }

    @Test("A burst is answered 429 with the time to wait")
    func rate() async throws {
        var limits = PushInbox.Limits()
        (limits.rate, limits.burst) = (0.01, 1)
        try await withServer(limits: limits) { own, _, _ in
            #expect(await node.post(message(own.subscription)).answer == .accepted)
            let reply = await node.post(message(own.subscription))
            #expect(reply.answer == .later(retryAfter: .seconds(100)) && reply.status == 429)
        }
    }

    @Test func theLimitOfBodiesIsThatOfTheInbox() async throws {
        var limits = PushInbox.Limits()
        limits.bodyByteCount = 100
        try await withServer(limits: limits) { own, _, _ in
            #expect(await node.post(message(own.subscription)).status == 413)
        }
    }

    @Test("Behind a proxy it is plain HTTP; long bodies are 413, other methods 405")
    func plain() async throws {
        try await withServer(tls: false) { own, _, port in
            let client = CurlClient()
            let url = "http://127.0.0.1:\(port)/a/b/\(own.token)"
            func status(_ method: String, _ body: [UInt8]? = nil, _ headers: [(String, String)] = []) async throws -> Int {
                try await client.send(HTTPRequest(method: method, url: url, headers: headers, body: body, timeout: .seconds(60))).status
            }
            #expect(try await status("POST", [UInt8](repeating: 0, count: 4097)) == 413)
            #expect(try await status("POST", [UInt8](repeating: 0, count: 1 << 20)) == 413)
            #expect(try await status("POST", [0], [("TTL", "1")]) == 400)
            #expect(try await status("GET") == 405)
            let unsigned = try #require(WebPushEncryption.seal([1], to: own.subscription.keys))
            let headers = [("TTL", "1"), ("Content-Encoding", "aes128gcm")]
            #expect(try await status("POST", unsigned, headers) == 401)
            #expect(events.received.isEmpty)
        }
    }

    @Test("Connections without TLS, and clients that trust another authority, get no answer; later clients are served")
    func notTLS() async throws {
        try await withServer { own, _, port in
            let plain = try RawConnection(port: port, sending: "POST / HTTP/1.1\r\n\r\n")
            try await eventually { plain.isClosed }
            // The header of a handshake record, and nothing more.
            let silent = try RawConnection(port: port, sending: "\u{16}\u{3}\u{1}")
            let stranger = WebPushClient(
                client: CurlClient(
                    configuration: WebPushClient.configuration(trust: .system, allowed: ["127.0.0.1"].compactMap { AddressRange($0) })),
                key: key, contact: "mailto:a@b.example")
            #expect(await stranger.post(message(own.subscription)).answer == .unanswered)
            #expect(await node.post(message(own.subscription)).answer == .accepted)
            #expect(!silent.isClosed && events.received.count == 1)
        }
    }
}
