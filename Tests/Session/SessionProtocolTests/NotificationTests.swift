import Foundation
import Core
@testable import SessionProtocol
import TestSupport
import Testing
import WakuCrypto

@Suite struct NotificationTests {
    private let sodium: Sodium
    private let vectors = SessionVectors.derived

    init() throws {
        sodium = try Sodium.load()
    }

    private func message(_ data: [UInt8]?, hash: String = "SHpOiupvBW6BNdF6fHuYrA4JxSEBflu9BHSDSNj2+eY") throws -> NotifyMessage {
        NotifyMessage(
            account: try #require(AccountID(vectors.sessionId.pubkey.bytes)), hash: hash, namespace: 0, storedAt: 1_695_078_498_534,
            expiresAt: 1_696_288_098_534, data: data)
    }

    // MARK: Reports

    @Test func reportOfTheVectorIsRead() throws {
        let bytes = vectors.notifyMessageBencodeHex.bytes
        let expected = try message(Array("abc 123".utf8))
        #expect(try NotifyMessage(parsing: bytes) == expected)
        #expect(expected.encoded() == bytes)
    }

    @Test func limitsOfReportsAreReached() throws {
        for count in [32, 99] {
            let made = try message(nil, hash: String(repeating: "h", count: count))
            #expect(try NotifyMessage(parsing: made.encoded()) == made)
        }
        let made = try message([UInt8](repeating: 1, count: 76_800))
        #expect(try NotifyMessage(parsing: made.encoded()).data?.count == 76_800)
        #expect(throws: SessionDropReason.tooLarge) {
            try NotifyMessage(parsing: message([UInt8](repeating: 1, count: 76_801)).encoded())
        }
        #expect(throws: SessionDropReason.tooLarge) { try NotifyMessage(parsing: [UInt8](repeating: 0, count: 500_000)) }
        #expect(try NotifyMessage(parsing: message(nil, hash: "!~0aZ/+=_- !~0aZ/+=_-!~0aZ/+=_-!~0aZ/+=_-").encoded()).hash.count == 41)
    }

    @Test(arguments: [31, 100])
    func hashOfAnotherLengthIsDropped(count: Int) throws {
        let made = try message(nil, hash: String(repeating: "h", count: count))
        #expect(throws: SessionDropReason.badHash) { try NotifyMessage(parsing: made.encoded()) }
    }

    @Test(arguments: ["\u{0}", "\n", "\u{1F}", "\u{7F}", "é"])
    func hashThatIsNotPrintableIsDropped(odd: String) throws {
        let made = try message(nil, hash: String(repeating: "h", count: 40) + odd)
        #expect(throws: SessionDropReason.badHash) { try NotifyMessage(parsing: made.encoded()) }
    }

    @Test(arguments: [(Int64(-1), Int64(1)), (1, -1), (.min, .min)])
    func negativeTimesAreDropped(storedAt: Int64, expiresAt: Int64) throws {
        let made = NotifyMessage(
            account: try message(nil).account, hash: String(repeating: "h", count: 43), namespace: 0, storedAt: storedAt,
            expiresAt: expiresAt, data: nil)
        #expect(throws: SessionDropReason.negativeTime) { try NotifyMessage(parsing: made.encoded()) }
    }

    @Test func malformedReportsAreDropped() throws {
        let raw = vectors.notifyMessageBencodeHex.bytes
        let whole = try #require(BencodeValue(parsing: raw[...], maximumValueCount: 32).dictionary)
        var cases = [
            [], Array("de".utf8), Array("le".utf8), Array("i1e".utf8), Array("5:abc".utf8), Array(raw.dropLast()), raw + [0x65],
            [0x6C] + raw + [0x65], [UInt8](repeating: 0x64, count: 1000), Array("99999999999999999999:x".utf8),
            [UInt8](repeating: 0xFF, count: 100),
        ]
        for key in ["@", "h", "n", "t", "z"] {
            var fields = whole
            fields[key] = nil
            cases.append(BencodeValue.dictionary(fields).encoded())
            fields[key] = .list([])
            cases.append(BencodeValue.dictionary(fields).encoded())
        }
        for (key, value) in [
            ("@", BencodeValue.bytes([5])), ("@", .integer(5)), ("n", .integer(70_000)), ("n", .text("0")), ("t", .text("now")),
            ("~", .integer(1)),
        ] {
            var fields = whole
            fields[key] = value
            cases.append(BencodeValue.dictionary(fields).encoded())
        }
        for bytes in cases { #expect(throws: SessionDropReason.malformed) { try NotifyMessage(parsing: bytes) } }
    }

    @Test func mutatedReportsNeverTrap() {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<20_000 { _ = try? NotifyMessage(parsing: random.damaged(vectors.notifyMessageBencodeHex.bytes)) }
    }

    // MARK: Payloads

    @Test func payloadsAreThoseOfTheVectors() throws {
        let cases = [
            (vectors.notificationWithData, try message(Array("abc 123".utf8)), true, true),
            (vectors.notificationNoData, try message(Array("abc 123".utf8)), false, false),
            (vectors.notificationTooBig, try message([UInt8](repeating: 1, count: 3000)), true, false),
        ]
        for (vector, message, wantsData, carriesData) in cases {
            let payload = NotificationPayload(message, wantsData: wantsData, service: .firebase)
            #expect(payload.metadata == vector.metadata)
            #expect(payload.padded == vector.plaintextPaddedHex.bytes)
            #expect(payload.carriesData == carriesData)
            let key = try #require(SymmetricKey(bytes: vector.encKey.bytes))
            let sealed = sodium.xChaChaSeal(payload.padded, key: key, nonce: vector.nonce.bytes)
            #expect(Data(sealed).base64EncodedString() == vector.encPayloadB64)
        }
    }

    @Test func wantedDataThatIsMissingHasNoLength() throws {
        let payload = NotificationPayload(try message(nil), wantsData: true, service: .firebase)
        #expect(payload.metadata == vectors.notificationNoData.metadata && !payload.carriesData)
    }

    @Test func dataIsSentUpTo2500Bytes() throws {
        let most = NotificationPayload(try message([UInt8](repeating: 1, count: 2500)), wantsData: true, service: .firebase)
        #expect(most.data?.count == 2500 && most.metadata.hasSuffix("\"l\": 2500}"))
        let more = NotificationPayload(try message([UInt8](repeating: 1, count: 2501)), wantsData: true, service: .firebase)
        #expect(more.data == nil && more.metadata.hasSuffix("\"l\": 2501, \"B\": true}"))
        for service in PushService.allCases {
            let metadata = NotificationPayload(
                try message([UInt8](repeating: 1, count: 2501)), wantsData: true, service: service
            ).metadata
            #expect(metadata.hasSuffix(service.isApple ? "\"l\": 2501, \"B\": 1}" : "\"l\": 2501, \"B\": true}"))
        }
        let none = NotificationPayload(try message([]), wantsData: true, service: .firebase)
        #expect(none.data == [] && none.metadata.hasSuffix("\"l\": 0}") && none.carriesData)
    }

    @Test func paddingReachesTheNextMultipleOf256() throws {
        for count in 0..<600 {
            let payload = NotificationPayload(try message([UInt8](repeating: 1, count: count)), wantsData: true, service: .firebase)
            let (value, rest) = try BencodeValue.parsePrefix(payload.padded[...], maximumValueCount: 3)
            #expect(payload.padded.count.isMultiple(of: 256) && rest.count < 256 && rest.allSatisfy { $0 == 0 })
            #expect(value.list?.last?.bytes?.count == count)
        }
    }

    @Test func oddHashesMakeValidJSON() throws {
        let hash = "\"\\\"\\abcdefghijklmnopqrstuvwxyz0123456789"
        let payload = NotificationPayload(try message(nil, hash: hash), wantsData: true, service: .firebase)
        #expect(try JSONValue(parsing: payload.metadata.utf8).object?["#"]?.text == hash)
    }

    @Test func noncesAreFresh() throws {
        let payload = NotificationPayload(try message(nil), wantsData: true, service: .firebase)
        let key = SymmetricKey.random()
        let sealed = (0..<100).map { _ in payload.sealedBytes(with: key, sodium: sodium) }
        #expect(Set(sealed.map { $0.prefix(24) }).count == 100)
        #expect(try sodium.xChaChaOpen(sealed[0][...], key: key) == payload.padded)
    }
}
