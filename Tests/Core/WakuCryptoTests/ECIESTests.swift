import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct ECIESTests {
    private let recipient: PrivateKey

    init() throws {
        recipient = try StatusGoVectors.recorded.pair("server")
    }

    // Computed with another implementation, from the ephemeral scalar 01 02 … 20 and the IV 00 01 … 0f.
    @Test(arguments: [
        (
            "",
            """
            0484bf7562262bbd6940085748f3be6afa52ae317155181ece31b66351ccffa4b08cc43d63b2859d469fee15f31c9edb5324266e6fd0407e87382d60fc4511acd8
            000102030405060708090a0b0c0d0e0f 9623e2f9b84a20cda1a5561579a268fe1d76acfa820a44ae965f1732b967d282
            """
        ),
        (
            "The quick brown fox jumps over the lazy dog",
            """
            0484bf7562262bbd6940085748f3be6afa52ae317155181ece31b66351ccffa4b08cc43d63b2859d469fee15f31c9edb5324266e6fd0407e87382d60fc4511acd8
            000102030405060708090a0b0c0d0e0f
            6fcb2c601170c3f39e507ead8a655039e9a74335eb732ece02b01695e97216ca67972d0c7b2258a1a07794
            d3b9c217e5676760ed03d15ccfa763318548196a8729eb0cfe55e96da3491ddf
            """
        ),
    ])
    func sealsAndOpensAsComputedElsewhere(plain: String, sealed: String) throws {
        let ephemeral = try PrivateKey(bytes: Array(1...32))
        #expect(ECIES.seal(Array(plain.utf8), to: recipient.publicKey, ephemeral: ephemeral, iv: Array(0...15)) == hex(sealed))
        #expect(try ECIES.open(hex(sealed), with: recipient) == Array(plain.utf8))
    }

    @Test func opensEveryRecordedPayload() throws {
        var count = 0
        for payload in StatusGoVectors.recorded.primitives.wakuPayloadV1 where payload.kind == .asymmetric {
            guard let plain = payload.plain?.bytes, let encoded = payload.encoded?.bytes else { continue }
            #expect(try ECIES.open(encoded, with: recipient) == plain, "\(payload)")
            count += 1
        }
        #expect(count == 18)
    }

    @Test func opensEveryRecordedMessageWithTheKeyOfItsRecipientAlone() throws {
        let vectors = StatusGoVectors.recorded
        let stranger = try vectors.pair("eve")
        var count = 0
        for message in vectors.messages {
            guard let owner = message.encryption?.recipientPublicKey, let plain = message.payloadPlain,
                let sealed = message.wakuMessage?.payload
            else { continue }
            #expect(try ECIES.open(sealed.bytes, with: vectors.pair(publicKey: owner)) == plain.bytes.bytes)
            #expect(throws: CryptoError.authenticationFailed) { try ECIES.open(sealed.bytes, with: stranger) }
            count += 1
        }
        #expect(count > 150)
    }

    @Test(arguments: [0, 1, 15, 16, 17, 1000])
    func opensWhatItSeals(_ count: Int) throws {
        let plain = randomBytes(count)
        let sealed = ECIES.seal(plain, to: recipient.publicKey)
        #expect(sealed.count == count + ECIES.overhead)
        #expect(try ECIES.open(sealed, with: recipient) == plain)
        #expect(ECIES.seal(plain, to: recipient.publicKey).prefix(65) != sealed.prefix(65))
    }

    @Test func everyFlippedBitIsFound() {
        let sealed = ECIES.seal([1, 2, 3], to: recipient.publicKey)
        for position in sealed.indices {
            var altered = sealed
            altered[position] ^= 1
            // With one coordinate changed it is no longer a point on the curve.
            let error = position < 65 ? CryptoError.invalidKey : .authenticationFailed
            #expect(throws: error, "byte \(position)") { try ECIES.open(altered, with: recipient) }
        }
    }

    @Test func everyTruncationIsFound() {
        let sealed = ECIES.seal([1, 2, 3], to: recipient.publicKey)
        for count in sealed.indices {
            let error = count < ECIES.overhead ? CryptoError.truncated : .authenticationFailed
            #expect(throws: error, "\(count) bytes") { try ECIES.open(Array(sealed.prefix(count)), with: recipient) }
        }
    }

    @Test func aCompressedEphemeralKeyIsRefused() {
        var sealed = ECIES.seal([UInt8](repeating: 0, count: 64), to: recipient.publicKey)
        sealed.replaceSubrange(..<65, with: recipient.publicKey.compressed)
        #expect(throws: CryptoError.invalidKey) { try ECIES.open(sealed, with: recipient) }
    }
}
