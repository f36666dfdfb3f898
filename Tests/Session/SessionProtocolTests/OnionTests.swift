@testable import SessionProtocol
import SessionStandIns
import TestSupport
import Testing
import WakuCrypto

@Suite struct OnionTests {
    private let sodium: Sodium
    private let key: OnionKey
    private let client: OnionClient
    private static let inner = #"{"method":"POST","endpoint":"/subscribe","headers":{}}"#

    init() throws {
        sodium = try Sodium.load()
        key = try #require(OnionKey(SecretBytes((0..<32).map { UInt8($0 + 1) }), sodium: sodium))
        client = OnionClient(serverKey: key.publicKey, sodium: sodium)
    }

    // MARK: Published

    @Test func publishedMessagesOpenAndSeal() throws {
        let vector = SessionPublishedVectors.recorded.onion.sealed
        let shared = try sodium.sharedSecret(SecretBytes(vector.serverSecret.bytes), with: vector.clientPublic.bytes)
        for (encryption, sealed) in [(OnionEncryption.aesGCM, vector.aesGcm.bytes), (.xChaCha20, vector.xchacha20.bytes)] {
            let box = OnionBox(
                encryption, shared: shared, clientKey: vector.clientPublic.bytes, serverKey: vector.serverPublic.bytes, sodium: sodium)
            #expect(box.open(sealed[...]) == Array("Hello world".utf8))
            for index in sealed.indices {
                var altered = sealed
                altered[index] ^= 8
                #expect(box.open(altered[...]) == nil)
            }
        }
    }

    @Test func bothSidesHaveTheSameKey() throws {
        let vector = SessionPublishedVectors.recorded.onion.sealed
        let secret = try #require(vector.clientSecret?.bytes)
        let shared = try sodium.sharedSecret(SecretBytes(secret), with: vector.serverPublic.bytes)
        let box = OnionBox(
            .xChaCha20, shared: shared, clientKey: vector.clientPublic.bytes, serverKey: vector.serverPublic.bytes, sodium: sodium)
        #expect(box.open(vector.xchacha20.bytes[...]) == Array("Hello world".utf8))
    }

    @Test func publishedRequestsAreDecrypted() throws {
        let vector = SessionPublishedVectors.recorded.onion.requests
        let key = try #require(OnionKey(SecretBytes(vector.serverSecret.bytes), sodium: sodium))
        #expect(key.publicKey == vector.serverPublic.bytes)
        for body in [vector.aesGcm.bytes, vector.xchacha20.bytes] {
            #expect(try key.open(body).plain == Array("Hello world".utf8))
        }
    }

    // MARK: Frames

    private static let names: [(name: String?, encryption: OnionEncryption)] = [
        ("xchacha20", .xChaCha20), ("xchacha20-poly1305", .xChaCha20), ("aes-gcm", .aesGCM), ("gcm", .aesGCM), (nil, .aesGCM),
    ]

    @Test(arguments: names)
    func everyNameOfAnEncryptionIsKnown(name: String?, encryption: OnionEncryption) throws {
        let request = try client.request([1, 2, 3], encryption: encryption, named: name)
        let opened = try key.open(request.body)
        #expect(opened.plain == [1, 2, 3])
        let sealed = opened.seal(.json("{}"))
        #expect(request.box.open(sealed[...]) == Array(#"l58:{"code":200,"headers":{"content-type":"application/json"}}2:{}e"#.utf8))
        #expect(opened.seal(.json("{}")) != sealed)
    }

    @Test func malformedFramesAreRefused() throws {
        let request = try client.request([], encryption: .xChaCha20, named: nil)
        let (sealed, hex) = (request.box.seal([1]), hexString(request.ephemeralKey))
        func frame(_ trailer: String) -> [UInt8] { OnionClient.frame(sealed, trailer) }
        let good = frame("{\"ephemeral_key\":\"\(hex)\",\"enc_type\":\"xchacha20\"}")
        #expect(try key.open(good).plain == [1])
        let bodies: [[UInt8]] = [
            [], [0, 0, 0], [5, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF] + good[4...], Array(good.dropLast()), frame(""), frame("[]"), frame("{}"),
            frame("{\"ephemeral_key\":\"00\"}"), frame("{\"ephemeral_key\":\"\(String(repeating: "zz", count: 32))\"}"),
            frame("{\"ephemeral_key\":5}"), frame("{\"ephemeral_key\":\"\(hex)\",\"enc_type\":\"rot13\"}"),
            frame("{\"ephemeral_key\":\"\(hex)\",\"enc_type\":5}"), Array("{}".utf8),
            frame("{\"ephemeral_key\":\"\(hex)\",\"a\":\"\(String(repeating: "a", count: 20_000))\"}"),
        ]
        for body in bodies {
            #expect { _ = try key.open(body) } throws: { error in
                guard let error = error as? OnionError, case .malformed = error else { return false }
                return error.status == 400 && !error.text.contains("\n")
            }
        }
    }

    @Test func requestsThatDoNotOpenAreUndecryptable() throws {
        let request = try client.request([], encryption: .xChaCha20, named: nil)
        let (sealed, hex) = (request.box.seal([1, 2, 3]), hexString(request.ephemeralKey))
        let trailer = "{\"ephemeral_key\":\"\(hex)\",\"enc_type\":\"xchacha20\"}"
        for body in [
            OnionClient.frame([], trailer), OnionClient.frame(Array(sealed.prefix(30)), trailer),
            OnionClient.frame(sealed, "{\"ephemeral_key\":\"\(hex)\",\"enc_type\":\"gcm\"}"),
            OnionClient.frame(Array(sealed.dropLast()) + [(sealed.last ?? 0) ^ 1], trailer),
        ] { #expect(throws: OnionError.undecryptable) { try key.open(body) } }
    }

    @Test(arguments: [0, 1] as [UInt8], OnionEncryption.allCases)
    func keysOfSmallOrderAreRefused(first: UInt8, encryption: OnionEncryption) throws {
        // The shared secret is zero, so a server that does not check it could decrypt the request.
        let point = [first] + [UInt8](repeating: 0, count: 31)
        let zero = SecretBytes([UInt8](repeating: 0, count: 32))
        let box = OnionBox(encryption, shared: zero, clientKey: point, serverKey: key.publicKey, sodium: sodium)
        let name = encryption == .xChaCha20 ? "xchacha20" : "gcm"
        let body = OnionClient.frame(box.seal([1]), "{\"ephemeral_key\":\"\(hexString(point))\",\"enc_type\":\"\(name)\"}")
        #expect(throws: OnionError.undecryptable) { try key.open(body) }
    }

    @Test func sizeIsBounded() throws {
        let request = try client.request([UInt8](repeating: 0, count: 9 << 20), encryption: .xChaCha20, named: "xchacha20")
        #expect(try key.open(request.body).plain.count == 9 << 20)
        #expect(throws: OnionError.tooLarge) { try key.open([UInt8](repeating: 0, count: (10 << 20) + 1)) }
        #expect(OnionError.tooLarge.status == 413)
    }

    // MARK: Inner requests

    @Test func innerRequestIsRead() throws {
        let body = try OnionInnerRequest(parsing: BencodeValue.list([.text(Self.inner), .text("{}")]).encoded())
        #expect(body.method == "POST" && body.path == "/subscribe" && body.body == Array("{}".utf8)[...])
        #expect(try OnionInnerRequest(parsing: BencodeValue.list([.text(Self.inner)]).encoded()).body == nil)
    }

    @Test(arguments: [
        "", "Hello world", "le", "de", "i5e", "2:{}", "l2:{}e", "l2:[]2:{}e", "ll2:{}e2:{}e", "l5:abc", "99999999999999999999:",
        String(repeating: "l", count: 50_000), "li1e2:{}e",
    ])
    func malformedInnerRequestIsRefused(text: String) {
        #expect(throws: OnionInnerRequest.Malformed.self) { try OnionInnerRequest(parsing: Array(text.utf8)) }
    }

    @Test(arguments: [
        #"{"method":5,"endpoint":"/subscribe","headers":{}}"#, #"{"endpoint":"/subscribe","headers":{}}"#,
        #"{"method":"POST","headers":{}}"#,
        #"{"method":"POST","endpoint":"subscribe","headers":{}}"#, #"{"method":"POST","endpoint":"","headers":{}}"#,
        #"{"method":"POST","endpoint":"/a%","headers":{}}"#, #"{"method":"POST","endpoint":"/%ff","headers":{}}"#,
        #"{"method":"POST","endpoint":"/a","headers":[]}"#, "no JSON",
    ])
    func innerHeadThatLacksSomethingIsRefused(head: String) {
        let plain = BencodeValue.list([.text(head), .text("{}")]).encoded()
        #expect(throws: OnionInnerRequest.Malformed.self) { try OnionInnerRequest(parsing: plain) }
    }

    @Test func threePartsAndTrailingBytesAreRefused() {
        let three = BencodeValue.list([.text(Self.inner), .text("{}"), .text("x")]).encoded()
        #expect(throws: OnionInnerRequest.Malformed.self) { try OnionInnerRequest(parsing: three) }
        let more = BencodeValue.list([.text(Self.inner), .text("{}")]).encoded() + [0x78]
        #expect(throws: OnionInnerRequest.Malformed.self) { try OnionInnerRequest(parsing: more) }
    }

    @Test(arguments: ["/subscribe", "/subscribe?", "/subscribe?a=b&c=%20", "/%73ubscribe", "/subscrib%65?x"])
    func queryAndPercentEncodingAreAllowed(endpoint: String) throws {
        let head = #"{"method":"POST","endpoint":"\#(endpoint)"}"#
        let request = try OnionInnerRequest(parsing: BencodeValue.list([.text(head)]).encoded())
        #expect(SessionEndpoint.route(method: request.method, path: request.path, isInsideOnion: true) == .found(.subscribe))
    }

    @Test func endpointsAreRouted() {
        #expect(SessionEndpoint.route(method: "POST", path: "/subscribe", isInsideOnion: false) == .found(.subscribe))
        #expect(SessionEndpoint.route(method: "GET", path: "/subscribe", isInsideOnion: false) == .methodNotAllowed)
        #expect(SessionEndpoint.route(method: "GET", path: "/healthz", isInsideOnion: true) == .found(.health))
        #expect(SessionEndpoint.route(method: "GET", path: "/web-push", isInsideOnion: true) == .found(.webPushKey))
        #expect(SessionEndpoint.route(method: "POST", path: "/healthz", isInsideOnion: false) == .methodNotAllowed)
        #expect(SessionEndpoint.route(method: "POST", path: "/oxen/v4/lsrpc", isInsideOnion: false) == .found(.onion))
        #expect(SessionEndpoint.route(method: "POST", path: "/oxen/v4/lsrpc", isInsideOnion: true) == .notFound)
        #expect(SessionEndpoint.route(method: "POST", path: "/subscribe/x", isInsideOnion: false) == .notFound)
    }

    @Test func innerHeadersAreInLowerCaseWithoutLength() {
        func text(_ response: OnionInnerResponse) -> String { String(decoding: response.encoded(), as: UTF8.self) }
        #expect(
            text(.failure(404, "x")) == #"l67:{"code":404,"headers":{"content-type":"text/plain; charset=utf-8"}}1:xe"#)
        #expect(
            text(.json("{}", retryAfter: 30)) == #"l77:{"code":503,"headers":{"content-type":"application/json","retry-after":"30"}}2:{}e"#)
    }

    @Test func mutatedRequestsNeverTrap() throws {
        var random = SeededGenerator(seed: 3)
        let plain = BencodeValue.list([.text(Self.inner), .text("{}")]).encoded()
        let request = try client.request(plain, encryption: .aesGCM, named: nil).body
        var opened = 0
        for _ in 0..<3000 {
            if let inner = try? key.open(random.damaged(request)) {
                opened += 1
                _ = try? OnionInnerRequest(parsing: inner.plain)
            }
            _ = try? OnionInnerRequest(parsing: random.damaged(plain))
        }
        #expect(opened < 3000)
    }
}
