import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@Suite struct MetadataEnvelopeTests {
    private static let stranger = PrivateKey.generate()
    private static let signer = PrivateKey.generate()

    @Test func recordedEnvelopesNameTheirSenderAndHaveTheRecordedID() throws {
        let vectors = StatusGoVectors.recorded
        var count = 0
        var unsigned = 0
        for message in vectors.messages {
            guard let recorded = message.applicationMetadata, let payload = recorded.payload?.bytes,
                let wakuSigner = message.payloadPlain?.signerPublicKey,
                !payload.isEmpty, let type = recorded.type, let signature = recorded.signature, let key = recorded.signerPublicKey
            else { continue }
            let waku = try PublicKey(parsing: wakuSigner.bytes)
            let envelope = try MetadataEnvelope(parsing: recorded.bytes.bytes, wakuSigner: waku)
            #expect(envelope.kind.rawValue == type)
            #expect(envelope.payload == payload)
            count += 1
            guard !signature.bytes.isEmpty else {
                #expect(envelope.sender == waku)
                // The reference omits the key if there is no signature; in `PROTOCOL.md` every id includes the sender's key.
                #expect(recorded.messageId?.bytes == Keccak256.hash(recorded.bytes.bytes))
                #expect(envelope.id == Keccak256.hash(waku.uncompressed + recorded.bytes.bytes))
                unsigned += 1
                continue
            }
            #expect(envelope.sender.uncompressed == key.bytes)
            #expect(envelope.id == recorded.messageId?.bytes)
            let encoded = MetadataEnvelope.encode(envelope.kind, payload: payload, signedBy: try vectors.pair(publicKey: key))
            #expect(encoded.bytes == recorded.bytes.bytes)
            #expect(encoded.id == recorded.messageId?.bytes)
        }
        #expect(count > 150)
        #expect(unsigned == 1)
    }

    @Test func emptyPayloadsAreRefusedAsRecorded() {
        // The payload field is absent, or present with length 0.
        for bytes in [hex("1812"), hex("12001812")] {
            #expect(throws: EnvelopeError.empty) { try MetadataEnvelope(parsing: bytes, wakuSigner: Self.stranger.publicKey) }
        }
    }

    @Test(arguments: MessageKind.allCases)
    func everyKindComesBackAsItWasEncoded(_ kind: MessageKind) throws {
        let encoded = MetadataEnvelope.encode(kind, payload: [1, 2, 3], signedBy: Self.signer)
        let envelope = try MetadataEnvelope(parsing: encoded.bytes, wakuSigner: Self.stranger.publicKey)
        #expect(envelope.kind == kind)
        #expect(envelope.sender == Self.signer.publicKey)
        #expect(envelope.payload == [1, 2, 3])
        #expect(envelope.id == encoded.id)
        #expect(encoded.id == Keccak256.hash(Self.signer.publicKey.uncompressed + encoded.bytes))
    }

    @Test func kindsHaveTheNumbersOfTheProtocol() {
        #expect(MessageKind.allCases.map(\.rawValue) == [16, 17, 18, 19, 20, 21])
        #expect(MessageKind.registration.rawValue == 16 && MessageKind.response.rawValue == 21)
    }

    @Test func theIDIsOfTheBytesAsTheyCame() throws {
        let encoded = MetadataEnvelope.encode(.query, payload: [1], signedBy: Self.signer)
        let longer = encoded.bytes + hex("980601")
        let envelope = try MetadataEnvelope(parsing: longer, wakuSigner: Self.stranger.publicKey)
        #expect(envelope.payload == [1])
        #expect(envelope.id == Keccak256.hash(Self.signer.publicKey.uncompressed + longer))
        #expect(envelope.id != encoded.id)
    }

    @Test(arguments: ["00", "0f", "16", "8001", "ffffffffffffffffff01"])
    func otherTypesAreNone(_ type: String) {
        let bytes = hex("120101 18" + type)
        #expect(throws: EnvelopeError.otherKind) { try MetadataEnvelope(parsing: bytes, wakuSigner: Self.stranger.publicKey) }
    }

    @Test(arguments: [64, 66, 1])
    func aSignatureOfAnotherLengthIsBad(_ count: Int) {
        let signature = (Signature(of: Keccak256.hash([1]), by: Self.signer).bytes + [0]).prefix(count)
        let bytes = [0x0a, UInt8(count)] + signature + hex("120101 1812")
        #expect(throws: EnvelopeError.badSignature) { try MetadataEnvelope(parsing: bytes, wakuSigner: Self.stranger.publicKey) }
    }

    @Test(arguments: [UInt8(4), 27, 28])
    func aSignatureWithVAboveThreeIsBad(_ v: UInt8) {
        let signature = Signature(of: Keccak256.hash([1]), by: Self.signer).bytes.dropLast() + [v]
        let bytes = [0x0a, 65] + signature + hex("120101 1812")
        #expect(throws: EnvelopeError.badSignature) { try MetadataEnvelope(parsing: bytes, wakuSigner: Self.stranger.publicKey) }
    }

    @Test func aSignatureOfZerosIsBad() {
        let bytes = [0x0a, 65] + [UInt8](repeating: 0, count: 65) + hex("120101 1812")
        #expect(throws: EnvelopeError.badSignature) { try MetadataEnvelope(parsing: bytes, wakuSigner: Self.stranger.publicKey) }
    }

    @Test func moreFieldsThanSixtyFourAreMalformed() throws {
        let bytes = MetadataEnvelope.encode(.query, payload: [1], signedBy: Self.signer).bytes
        let field = hex("980601")
        let most = bytes + [[UInt8]](repeating: field, count: 61).joined()
        #expect(try MetadataEnvelope(parsing: most, wakuSigner: Self.stranger.publicKey).payload == [1])
        #expect(throws: EnvelopeError.malformed) { try MetadataEnvelope(parsing: most + field, wakuSigner: Self.stranger.publicKey) }
    }
}
