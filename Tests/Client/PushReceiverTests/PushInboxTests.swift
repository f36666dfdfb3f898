import Core
import PushReceiver
import Testing
import WakuCrypto

/// One test per arrow of the picture at ``PushInbox``, and repeated messages.
@Suite("The inbox of a Web Push receiver")
final class PushInboxTests {
    private let server = VAPIDKey(.generate())
    private let own: ReceiverSubscription
    private let now = Timestamp(rawValue: 1_700_000_000_000_000_000)
    private var inbox: PushInbox

    init() throws {
        own = try #require(ReceiverSubscription(base: "https://push.example/bot", vapidKey: server.key.publicKey))
        inbox = PushInbox([own])
    }

    private func content(_ id: String) -> [UInt8] {
        Array(#"{"v":1,"protocol":"status","id":"\#(id)","type":"message","chatId":"0x01"}"#.utf8)
    }

    private func authorization(
        _ key: VAPIDKey? = nil, origin: String = "https://push.example", lifetime: Int64 = 3600
    ) throws -> String {
        let origin = try #require(WebPushOrigin(endpoint: origin))
        let key = key ?? server
        let expires = now.rawValue / 1_000_000_000 + lifetime
        return key.authorization(key.token(for: origin, contact: "mailto:a@b.example", expires: expires))
    }

    private func request(_ id: String = "1") throws -> PushInbox.Request {
        PushInbox.Request(
            path: "/bot/" + own.token, authorization: try authorization(), contentEncoding: "aes128gcm", ttl: "60",
            body: WebPushEncryption.seal(content(id), to: own.subscription.keys))
    }

    private func refusal(_ change: (inout PushInbox.Request) throws -> Void) throws -> PushInbox.Refusal? {
        var request = try request()
        try change(&request)
        guard case .refused(let refusal) = inbox.receive(request, at: now) else { return nil }
        return refusal
    }

    @Test("A message is decrypted")
    func received() throws {
        guard case .received(let notification) = inbox.receive(try request(), at: now) else {
            Issue.record("not received")
            return
        }
        #expect(notification.content == content("1") && notification.subscription == own.token)
        #expect(notification.fields?.protocolName == "status" && notification.fields?.id == "1")
        #expect(notification.fields?.type == "message" && notification.fields?.chatID == "0x01")
    }

    @Test("A message with the same id is received once, also when it is encrypted anew")
    func repeated() throws {
        _ = inbox.receive(try request(), at: now)
        guard case .repeated = inbox.receive(try request(), at: now) else {
            Issue.record("received twice")
            return
        }
        guard case .received = inbox.receive(try request("2"), at: now) else {
            Issue.record("another message was not received")
            return
        }
    }

    @Test("A message that was forgotten is received again")
    func forgotten() throws {
        guard case .received(let notification) = inbox.receive(try request(), at: now) else {
            Issue.record("not received")
            return
        }
        inbox.forget(notification)
        guard case .received = inbox.receive(try request(), at: now) else {
            Issue.record("a message that was not stored counts as received")
            return
        }
    }

    @Test("Content of another form than waku-push's is received, without fields")
    func foreignContent() throws {
        var request = try request()
        for text in ["", "hello", "{}", #"{"v":2,"protocol":"status","id":"1"}"#] {
            request.body = WebPushEncryption.seal(Array(text.utf8), to: own.subscription.keys)
            guard case .received(let notification) = inbox.receive(request, at: now) else {
                Issue.record("\(text) was not received")
                continue
            }
            #expect(notification.fields == nil && notification.content == Array(text.utf8))
        }
    }

    @Test("Other paths are unknown, whatever comes before the last component does not matter")
    func paths() throws {
        for path in ["", "/", "/bot/", "/" + own.token + "/", "/" + own.token.dropLast(), "/" + own.token + "?a"] {
            #expect(try refusal { $0.path = path } == .unknownPath)
        }
        #expect(try refusal { $0.path = "/" + own.token } == nil)
    }

    @Test("A removed subscription is gone, also after a restart")
    func removed() throws {
        inbox.remove(own)
        #expect(try refusal { _ in } == .removed)
        inbox = PushInbox([], removed: [own.token])
        #expect(try refusal { _ in }?.status == 410)
    }

    @Test("Messages over the rate are refused until the rate allows one")
    func rate() throws {
        var limits = PushInbox.Limits()
        (limits.rate, limits.burst) = (2, 3)
        inbox = PushInbox([own], limits: limits)
        for _ in 0..<3 { #expect(try refusal { _ in } == nil) }
        #expect(try refusal { _ in } == .tooMany(retryAfterSeconds: 1))
        let request = try request()
        guard case .refused = inbox.receive(request, at: now - .seconds(60)) else {
            Issue.record("a clock that goes back refilled the allowance")
            return
        }
        guard case .repeated = inbox.receive(request, at: now + .milliseconds(500)) else {
            Issue.record("the allowance did not refill")
            return
        }
    }

    @Test("The allowance refills also after a clock that was ahead is set right")
    func clockAhead() throws {
        var limits = PushInbox.Limits()
        (limits.rate, limits.burst) = (2, 1)
        inbox = PushInbox([own], limits: limits)
        let request = try request()
        _ = inbox.receive(request, at: now + .seconds(1800))
        #expect(try refusal { _ in } == .tooMany(retryAfterSeconds: 1))
        guard case .repeated = inbox.receive(request, at: now + .milliseconds(500)) else {
            Issue.record("the allowance did not refill")
            return
        }
    }

    @Test("With a rate of 0 only the burst is received")
    func burstOnly() throws {
        var limits = PushInbox.Limits()
        (limits.rate, limits.burst) = (0, 1)
        inbox = PushInbox([own], limits: limits)
        #expect(try refusal { _ in } == nil)
        #expect(try refusal { _ in } == .tooMany(retryAfterSeconds: 3600))
    }

    @Test("Long bodies, and bodies that were not read, are too long")
    func tooLong() throws {
        #expect(try refusal { $0.body = nil } == .tooLong)
        #expect(try refusal { $0.body = [UInt8](repeating: 0, count: 4097) } == .tooLong)
        #expect(try refusal { $0.body = [UInt8](repeating: 0, count: 4096) } == .notDecrypted)
    }

    @Test("Requests without the headers of RFC 8030 and RFC 8291 are refused")
    func headers() throws {
        for ttl in [nil, "", "-1", "x", "4294967296"] { #expect(try refusal { $0.ttl = ttl } == .badHeader("TTL")) }
        for encoding in [nil, "aesgcm", "gzip"] {
            #expect(try refusal { $0.contentEncoding = encoding } == .badHeader("Content-Encoding"))
        }
    }

    @Test("Only the server with the VAPID key may post")
    func signatures() throws {
        #expect(try refusal { $0.authorization = nil } == .unsigned)
        #expect(try refusal { $0.authorization = "" } == .wrongSignature)
        #expect(try refusal { $0.authorization = try authorization(VAPIDKey(.generate())) } == .wrongSignature)
        #expect(try refusal { $0.authorization = try authorization(origin: "https://other.example") } == .wrongSignature)
        #expect(try refusal { $0.authorization = try authorization(lifetime: 0) } == .wrongSignature)
        #expect(try refusal { $0.authorization = try authorization(lifetime: 24 * 3600 + 1) } == .wrongSignature)
        #expect(try refusal { $0.authorization = try authorization(lifetime: 24 * 3600) } == nil)
        // Signed by another key, with the server's in its place.
        let other = VAPIDKey(.generate())
        let forged = try authorization(other).replacing(other.publicKey, with: server.publicKey)
        #expect(try refusal { $0.authorization = forged } == .wrongSignature)
    }

    @Test("A token that was checked before counts until it expires")
    func rememberedToken() throws {
        let request = try request()
        _ = inbox.receive(request, at: now)
        guard case .refused(.wrongSignature) = inbox.receive(request, at: now + .seconds(3600)) else {
            Issue.record("an expired token was accepted")
            return
        }
    }

    @Test("Without a VAPID key, every server may post")
    func anyServer() throws {
        let own = try #require(ReceiverSubscription(base: "https://push.example", vapidKey: nil))
        inbox = PushInbox([own])
        let body = WebPushEncryption.seal(content("1"), to: own.subscription.keys)
        let request = PushInbox.Request(path: "/" + own.token, contentEncoding: "aes128gcm", ttl: "0", body: body)
        guard case .received = inbox.receive(request, at: now) else {
            Issue.record("not received")
            return
        }
    }

    @Test("A body for other keys is not decrypted")
    func otherKeys() throws {
        let other = try #require(ReceiverSubscription(base: "https://push.example", vapidKey: nil))
        #expect(try refusal { $0.body = WebPushEncryption.seal([1], to: other.subscription.keys) } == .notDecrypted)
        #expect(try refusal { $0.body = [] } == .notDecrypted)
        // A refused message does not count as received.
        guard case .received = inbox.receive(try request(), at: now) else {
            Issue.record("not received")
            return
        }
    }
}
