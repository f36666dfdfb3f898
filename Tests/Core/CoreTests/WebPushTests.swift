import Core
import Foundation
import TestSupport
import Testing

@testable import WakuCrypto

@Suite("Web Push")
struct WebPushTests {
    private static func bytes(_ text: String) throws -> [UInt8] { try #require(Base64URL.decode(text)) }

    private static func receiver() throws -> (key: P256PrivateKey, keys: WebPushKeys) {
        let key = P256PrivateKey.generate()
        return (key, try #require(WebPushKeys(publicKey: key.publicKey, secret: randomBytes(16))))
    }

    // MARK: Encryption

    @Test("Encryption reproduces each vector byte for byte", arguments: WebPushVectors.recorded.vectors)
    func vectors(_ vector: WebPushVectors.Message) throws {
        let receiver = try #require(P256PrivateKey(bytes: try Self.bytes(vector.uaPrivate)))
        let sender = try #require(P256PrivateKey(bytes: try Self.bytes(vector.asPrivate)))
        #expect(Base64URL.encode(receiver.publicKey.bytes) == vector.uaPublic)
        #expect(Base64URL.encode(sender.publicKey.bytes) == vector.asPublic)
        let plain = try Self.bytes(vector.plaintext)
        let auth = try Self.bytes(vector.auth)
        let keys = try #require(WebPushKeys(publicKey: receiver.publicKey, secret: auth))
        let body = try #require(
            WebPushEncryption.seal(plain, paddedTo: plain.count, to: keys, ephemeral: sender, salt: try Self.bytes(vector.salt)))
        #expect(Base64URL.encode(body) == vector.body)
        #expect(try WebPushEncryption.open(body, key: receiver, secret: auth) == plain)
    }

    @Test("A body has one of four sizes, and opens to its content", arguments: [0, 1, 511, 512, 513, 1024, 1025, 2048, 2049, 3993])
    func sizes(_ count: Int) throws {
        let (key, keys) = try Self.receiver()
        let content = randomBytes(count)
        let body = try #require(WebPushEncryption.seal(content, to: keys))
        #expect(WebPushEncryption.contentSizes == [512, 1024, 2048, 3993])
        #expect(WebPushEncryption.contentSizes.map { $0 + 103 }.contains(body.count) && body.count <= 4096)
        #expect(try WebPushEncryption.open(body, key: key, secret: keys.secret) == content)
    }

    @Test("Content beyond the largest size is refused")
    func tooLong() throws {
        #expect(WebPushEncryption.seal(randomBytes(3994), to: try Self.receiver().keys) == nil)
    }

    @Test("Each body has a key and a salt of its own")
    func fresh() throws {
        let (_, keys) = try Self.receiver()
        let bodies = try (0..<20).map { _ in try #require(WebPushEncryption.seal([1], to: keys)) }
        #expect(Set(bodies.map { Array($0[..<16]) }).count == 20)
        #expect(Set(bodies.map { Array($0[21..<86]) }).count == 20)
    }

    @Test("Altered and cut bodies throw and do not trap")
    func altered() throws {
        let (key, keys) = try Self.receiver()
        let body = try #require(WebPushEncryption.seal(Array("content".utf8), to: keys))
        for index in stride(from: 0, to: body.count, by: 7) where !(16..<20).contains(index) {
            var altered = body
            altered[index] ^= 1
            #expect(throws: CryptoError.self) { try WebPushEncryption.open(altered, key: key, secret: keys.secret) }
        }
        for count in 0..<body.count {
            #expect(throws: CryptoError.self) { try WebPushEncryption.open(Array(body[..<count]), key: key, secret: keys.secret) }
        }
        #expect(throws: CryptoError.self) { try WebPushEncryption.open(body, key: .generate(), secret: keys.secret) }
        #expect(throws: CryptoError.self) { try WebPushEncryption.open(body, key: key, secret: randomBytes(16)) }
    }

    // MARK: Keys

    @Test("Only points on the curve are public keys")
    func points() throws {
        let point = P256PrivateKey.generate().publicKey.bytes
        #expect(try P256PublicKey(parsing: point).bytes == point)
        var moved = point
        moved[64] ^= 1
        let zeros: [UInt8] = [4] + [UInt8](repeating: 0, count: 64)
        let others: [[UInt8]] = [[], Array(point.dropLast()), point + [0], moved, zeros, [2] + point.dropFirst(), [0]]
        for other in others {
            #expect(throws: CryptoError.self) { try P256PublicKey(parsing: other) }
        }
    }

    @Test("Scalars are from 1 to the group's order less 1")
    func scalars() {
        let order = WakuCrypto.bytes(hex: "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551") ?? []
        #expect(P256PrivateKey(bytes: [UInt8](repeating: 0, count: 32)) == nil)
        #expect(P256PrivateKey(bytes: order) == nil)
        #expect(P256PrivateKey(bytes: [UInt8](repeating: 255, count: 32)) == nil)
        #expect(P256PrivateKey(bytes: order.dropLast() + [0x50]) != nil)
        #expect(P256PrivateKey(bytes: order.dropLast()) == nil)
    }

    @Test("Signatures verify, and altered ones do not")
    func signatures() {
        let key = P256PrivateKey.generate()
        let signature = key.signature(of: [1, 2, 3])
        #expect(signature.count == 64 && key.publicKey.isValid(signature, of: [1, 2, 3]))
        #expect(!key.publicKey.isValid(signature, of: [1, 2, 4]))
        #expect(!key.publicKey.isValid([UInt8](repeating: 0, count: 64), of: [1, 2, 3]))
        #expect(!key.publicKey.isValid([UInt8](repeating: 255, count: 64), of: [1, 2, 3]))
        #expect(!key.publicKey.isValid([], of: [1, 2, 3]))
    }

    @Test("A key file is base64url or PEM")
    func keyFiles() async throws {
        let key = VAPIDKey(.generate())
        #expect(VAPIDKey(file: Array((key.fileText + "\n").utf8))?.publicKey == key.publicKey)
        let pem = try await ExternalTool.run("openssl", ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
        #expect(VAPIDKey(file: Array(pem.output.utf8)) != nil)
        let old = try await ExternalTool.run("openssl", ["ecparam", "-name", "prime256v1", "-genkey", "-noout"])
        #expect(VAPIDKey(file: Array(old.output.utf8)) != nil)
        let other = try await ExternalTool.run("openssl", ["ecparam", "-name", "secp384r1", "-genkey", "-noout"])
        #expect(VAPIDKey(file: Array(other.output.utf8)) == nil)
        #expect(VAPIDKey(file: Array("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".utf8)) == nil)
        #expect(VAPIDKey(file: []) == nil)
    }

    @Test("A token names origin, end and contact, and its signature verifies")
    func token() throws {
        let key = VAPIDKey(.generate())
        let origin = try #require(WebPushOrigin(endpoint: "https://push.example:8443/abc"))
        let token = key.token(for: origin, contact: "mailto:operator@example.org", expires: 1_800_000_000)
        let parts = token.split(separator: ".")
        try #require(parts.count == 3)
        #expect(key.key.publicKey.isValid(try Self.bytes(String(parts[2])), of: Array("\(parts[0]).\(parts[1])".utf8)))
        let claims = try JSONSerialization.jsonObject(with: Data(try Self.bytes(String(parts[1])))) as? [String: any Sendable]
        #expect(claims?["aud"] as? String == "https://push.example:8443")
        #expect(claims?["exp"] as? Int == 1_800_000_000)
        #expect(claims?["sub"] as? String == "mailto:operator@example.org")
        #expect(key.authorization("T") == "vapid t=T, k=\(key.publicKey)")
    }

    @Test("A contact is a mailto or https URL")
    func contacts() {
        for contact in ["mailto:a@b.org", "https://example.org/contact"] { #expect(VAPIDKey.isContact(contact)) }
        for contact in [
            "", "a@b.org", "mailto:", "mailto:a", "mailto:@b", "http://example.org", "https://", "mailto:a\"@b", "mailto:a b@c",
        ] {
            #expect(!VAPIDKey.isContact(contact))
        }
    }

    // MARK: Subscriptions

    private static let point = WebPushVectors.recorded.vectors[0].uaPublic
    private static let auth = WebPushVectors.recorded.vectors[0].auth

    private static func json(endpoint: String = "https://push.example/1", p256dh: String = point, auth: String = auth) -> [UInt8] {
        Array(#"{"endpoint":"\#(endpoint)","expirationTime":null,"keys":{"p256dh":"\#(p256dh)","auth":"\#(auth)"}}"#.utf8)
    }

    @Test("A subscription is read as browsers write it, with padding or without, and unknown members are ignored")
    func subscription() throws {
        let subscription = try #require(PushSubscription(json: Self.json()))
        #expect(subscription.endpoint == "https://push.example/1" && subscription.origin.description == "https://push.example")
        #expect(subscription.json == Self.json())
        #expect(PushSubscription(json: Self.json(p256dh: Self.point + "=", auth: Self.auth + "==")) == subscription)
        let more = #"{"x":[1],"keys":{"auth":"\#(Self.auth)","p256dh":"\#(Self.point)","z":{}},"endpoint":"https://push.example/1"}"#
        #expect(PushSubscription(json: Array(more.utf8)) == subscription)
    }

    @Test("Wrong subscriptions are refused")
    func wrongSubscriptions() {
        let wrong: [[UInt8]] = [
            [], Array("{}".utf8), Array("null".utf8), Array("[]".utf8), Array("{\"endpoint\":1}".utf8), [0xFF], Self.json().dropLast(),
            Self.json(p256dh: ""), Self.json(p256dh: String(Self.point.dropLast())), Self.json(p256dh: Self.point + "A"),
            Self.json(p256dh: "BA" + String(repeating: "A", count: 85)), Self.json(auth: ""), Self.json(auth: Self.auth + "="),
            Self.json(auth: Self.auth + "AA"), Self.json(auth: "+" + Self.auth.dropFirst()),
            Self.json(endpoint: "https://push.example/" + String(repeating: "a", count: 2048)),
            Self.json() + [UInt8](repeating: 0x20, count: 4096),
        ]
        for json in wrong { #expect(PushSubscription(json: json) == nil) }
        #expect(PushSubscription(json: Array(repeating: UInt8(ascii: "["), count: 4096)) == nil)
    }

    @Test("A subscription prints nothing of itself")
    func redaction() throws {
        let subscription = try #require(PushSubscription(json: Self.json()))
        for text in ["\(subscription)", String(reflecting: subscription), "\([subscription])", "\(Optional(subscription) as Any)"] {
            #expect(!text.contains("push.example") && !text.contains(Self.auth))
        }
    }

    @Test("An origin is in lower case, without the default port")
    func origins() {
        let origins = [
            "https://Push.Example": "https://push.example", "HTTPS://push.example:443/a?b": "https://push.example",
            "https://push.example?x": "https://push.example", "https://push.example:8443": "https://push.example:8443",
            "https://192.0.2.1/a": "https://192.0.2.1", "https://[2001:DB8::1]:444/": "https://[2001:db8::1]:444",
            "https://a-b.xn--bcher-kva.example/": "https://a-b.xn--bcher-kva.example",
        ]
        for (endpoint, origin) in origins { #expect(WebPushOrigin(endpoint: endpoint)?.description == origin) }
        let wrong = [
            "", "https://", "https:///a", "http://push.example/", "ftp://a/", "https://user@push.example/", "https://u:p@push.example/",
            "https://push.example:0/", "https://push.example:65536/", "https://push.example:/", "https://push.example:1a/",
            "https://push.example/#f", "https://push.example/a b", "https://push.example/\\", "https://pu\\sh.example/",
            "https://bücher.example/",
            "https://push..example/", "https://push.example./", "https://.push/", "https://%31.example/", "https://2130706433/",
            "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://127.0.0.0x1/", "https://127.0.0.256/",
            "https://[::1/", "https://[::1]x/", "https://[1]/", "https://[fe80::1%25eth0]/", "https://push_example/", "https://a\nb/",
        ]
        for endpoint in wrong { #expect(WebPushOrigin(endpoint: endpoint) == nil, "\(endpoint)") }
    }

    @Test("Base64url is read strictly")
    func base64() {
        for count in 0..<20 {
            let bytes = randomBytes(count)
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
        }
        for text in ["A", "AB", "AAB", "A===", "AA=", "AA===", "AAA==", "A A", "A+", "A/", "=", "====", "AAAA=", "AAAA===="] {
            #expect(Base64URL.decode(text) == nil, "\(text)")
        }
        #expect(Base64URL.decode("AA==") == [0])
    }
}
