import Core
import Foundation
import TestSupport
import Testing
import WakuCrypto

@Suite("Web Push with other implementations", .enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python"))
struct WebPushInteropTests {
    private struct Answer: Decodable {
        struct Claims: Decodable {
            let aud: String
            let exp: Int64
            let sub: String
        }
        var open: String?
        var verify: Bool?
        var claims: Claims?
        var seal: String?
    }

    private func ask(_ question: [String: any Sendable]) async throws -> Answer {
        let python = try #require(OtherLibP2P.python)
        let text = String(decoding: try JSONSerialization.data(withJSONObject: question), as: UTF8.self)
        let ended = try await ExternalTool.run(python, [Repository.file("Tests/Interop/web_push.py").path], input: text)
        try #require(ended.status == 0, "\(ended.errors)")
        return try JSONDecoder().decode(Answer.self, from: Data(ended.output.utf8))
    }

    @Test("http-ece opens bodies of every size", arguments: [0, 100, 1000, 2000, 3993])
    func open(_ count: Int) async throws {
        let key = P256PrivateKey.generate()
        let keys = try #require(WebPushKeys(publicKey: key.publicKey, secret: randomBytes(16)))
        let content = randomBytes(count)
        let body = try #require(WebPushEncryption.seal(content, to: keys))
        let question = [
            "body": Base64URL.encode(body), "key": key.scalar.withBytes { Base64URL.encode(Array($0)) },
            "auth": Base64URL.encode(keys.secret),
        ]
        #expect(try await ask(["open": question]).open == Base64URL.encode(content))
    }

    @Test("py-vapid accepts the Authorization header")
    func verify() async throws {
        let key = VAPIDKey(.generate())
        let origin = try #require(WebPushOrigin(endpoint: "https://push.example:8443/x"))
        let expires = Int64(Date().timeIntervalSince1970) + 3600
        let header = key.authorization(key.token(for: origin, contact: "mailto:operator@example.org", expires: expires))
        let answer = try await ask(["verify": header])
        #expect(answer.verify == true)
        #expect(answer.claims?.aud == "https://push.example:8443" && answer.claims?.exp == expires)
        #expect(answer.claims?.sub == "mailto:operator@example.org")
    }

    @Test("Bodies of pywebpush open to their content")
    func seal() async throws {
        let key = P256PrivateKey.generate()
        let keys = try #require(WebPushKeys(publicKey: key.publicKey, secret: randomBytes(16)))
        let content = randomBytes(700)
        let question: [String: any Sendable] = [
            "endpoint": "https://push.example/x", "content": Base64URL.encode(content),
            "keys": ["p256dh": Base64URL.encode(keys.publicKey.bytes), "auth": Base64URL.encode(keys.secret)],
        ]
        let sealed = try #require(try await ask(["seal": question]).seal)
        #expect(try WebPushEncryption.open(try #require(Base64URL.decode(sealed)), key: key, secret: keys.secret) == content)
    }
}
