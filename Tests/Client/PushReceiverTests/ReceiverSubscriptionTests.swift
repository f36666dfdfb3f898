import Core
import Foundation
import PushReceiver
import TestSupport
import Testing
import WakuCrypto

@Suite("A receiver's subscription and VAPID tokens")
struct ReceiverSubscriptionTests {
    @Test("A stored subscription is the same, and opens the same messages")
    func stored() throws {
        for vapidKey in [nil, P256PrivateKey.generate().publicKey] {
            let own = try #require(ReceiverSubscription(base: "https://127.0.0.1:8443", vapidKey: vapidKey))
            let read = try #require(ReceiverSubscription(json: own.json))
            #expect(read.subscription == own.subscription && read.vapidKey == vapidKey && read.token == own.token)
            let body = try #require(WebPushEncryption.seal([1, 2], to: own.subscription.keys))
            #expect(try read.open(body) == [1, 2])
            // The registered part has no private key.
            let registered = String(decoding: own.subscription.json, as: UTF8.self)
            #expect(PushSubscription(json: own.subscription.json) == own.subscription && !registered.contains("\"key\""))
        }
    }

    @Test("Tokens can't be guessed, and nothing is printed")
    func secrets() throws {
        let all = try (0..<10).map { _ in try #require(ReceiverSubscription(base: "https://push.example/", vapidKey: nil)) }
        #expect(Set(all.map(\.token)).count == 10 && all.allSatisfy { $0.token.utf8.count == 32 })
        #expect(all[0].subscription.endpoint == "https://push.example/" + all[0].token)
        var text = ""
        dump(all[0], to: &text)
        #expect(!text.contains(all[0].token) && "\(all[0])" == "<redacted>")
    }

    @Test("Base URLs without https are refused", arguments: ["", "http://a.example", "https://", "https://a.example/?x", "ftp://a"])
    func bases(_ base: String) {
        #expect(ReceiverSubscription(base: base, vapidKey: nil) == nil)
    }

    @Test("Damaged files are refused")
    func damaged() throws {
        let own = try #require(ReceiverSubscription(base: "https://push.example", vapidKey: P256PrivateKey.generate().publicKey))
        let text = String(decoding: own.json, as: UTF8.self)
        for part in ["endpoint", "auth", "key", "https"] {
            #expect(ReceiverSubscription(json: Array(text.replacing(part, with: "x").utf8)) == nil)
        }
        #expect(ReceiverSubscription(json: Array(text.replacing("\"vapid\":\"B", with: "\"vapid\":\"C").utf8)) == nil)
        #expect(ReceiverSubscription(json: own.json + [UInt8](repeating: 0x20, count: 4096)) == nil)
    }

    @Test("Authorization headers of other forms are refused")
    func forms() throws {
        let key = VAPIDKey(.generate())
        let origin = try #require(WebPushOrigin(endpoint: "https://push.example"))
        let now = Timestamp.now()
        let token = key.token(for: origin, contact: "mailto:a@b.example", expires: now.rawValue / 1_000_000_000 + 60)
        let other = P256PrivateKey.generate().publicKey
        for text in [
            "vapid t=\(token), k=\(key.publicKey)", "VAPID k=\(key.publicKey),t=\(token)", "vapid  t=\(token) ,  k=\(key.publicKey) ",
        ] {
            let parsed = try #require(VAPIDAuthorization(parsing: text), "\(text)")
            #expect(parsed.isValid(by: key.key.publicKey, for: origin, at: now) && !parsed.isValid(by: other, for: origin, at: now))
        }
        for text in [
            "", "vapid", "Bearer \(token)", "vapid t=\(token)", "vapid k=\(key.publicKey)", "vapid t=, k=", "vapid t=\(token), k=AAAA",
            "vapid t=\(token), t=\(token), k=\(key.publicKey)", "vapid t=a.b, k=\(key.publicKey)", "vapid t=a.b.c, k=\(key.publicKey)",
            "vapid t=\(token), k=\(key.publicKey), x=" + String(repeating: "x", count: 2048),
        ] {
            #expect(VAPIDAuthorization(parsing: text) == nil, "\(text)")
        }
        // A token without a signature, as some libraries accepted once.
        let parts = token.split(separator: ".")
        // A number at which Foundation's decoder ends the process.
        let deadly = Base64URL.encode(Array("{\"exp\":1\(String(repeating: "0", count: 300))e-284,\"aud\":\"https://push.example\"}".utf8))
        #expect(VAPIDAuthorization(parsing: "vapid t=\(parts[0]).\(deadly).\(parts[2]), k=\(key.publicKey)") == nil)
        let none = Base64URL.encode(Array(#"{"typ":"JWT","alg":"none"}"#.utf8))
        #expect(VAPIDAuthorization(parsing: "vapid t=\(none).\(parts[1]).\(parts[2]), k=\(key.publicKey)") == nil)
    }

    @Test(
        "A token of py-vapid is accepted, and not for another origin",
        .enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python"))
    func otherImplementation() async throws {
        struct Answer: Decodable { let sign: String }
        let key = P256PrivateKey.generate()
        let now = Timestamp.now()
        let question: [String: any Sendable] = [
            "sign": [
                "key": key.scalar.withBytes { Base64URL.encode(Array($0)) }, "aud": "https://push.example", "sub": "mailto:a@b.example",
                "exp": Int(now.rawValue / 1_000_000_000 + 600),
            ] as [String: any Sendable]
        ]
        let text = String(decoding: try JSONSerialization.data(withJSONObject: question), as: UTF8.self)
        let ended = try await ExternalTool.run(
            try #require(OtherLibP2P.python), [Repository.file("Tests/Interop/web_push.py").path], input: text)
        try #require(ended.status == 0, "\(ended.errors)")
        let header = try JSONDecoder().decode(Answer.self, from: Data(ended.output.utf8)).sign
        let parsed = try #require(VAPIDAuthorization(parsing: header), "\(header)")
        #expect(parsed.isValid(by: key.publicKey, for: try #require(WebPushOrigin(endpoint: "https://push.example/x")), at: now))
        #expect(!parsed.isValid(by: key.publicKey, for: try #require(WebPushOrigin(endpoint: "https://push.example:1/x")), at: now))
    }
}
