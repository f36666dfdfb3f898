import TestSupport
import Testing
import WakuCrypto

@testable import Waku

@Suite struct PayloadFrameTests {
    private static let key = PrivateKey.generate()

    private static func zeros(_ count: Int) -> [UInt8] {
        [UInt8](repeating: 0, count: count)
    }

    @Test(arguments: StatusGoVectors.recorded.primitives.wakuPayloadV1)
    func recordedPayloadsAreReadAndWrittenAlike(_ payload: StatusGoVectors.Payload) throws {
        let signer = payload.signed ? try StatusGoVectors.recorded.pair("alice") : nil
        let overhead = payload.kind == .asymmetric ? ECIES.overhead : AESGCM.nonceByteCount + AESGCM.tagByteCount
        guard let plain = payload.plain?.bytes, let data = payload.data?.bytes else {
            let frame = PayloadFrame.encode(Self.zeros(payload.dataLength), signedBy: signer, padding: Self.zeros)
            #expect(frame.count + overhead == payload.encodedLength)
            return
        }
        let frame = try PayloadFrame(parsing: plain)
        #expect(frame.data == data)
        #expect(try frame.signer() == signer?.publicKey)
        let start = 1 + (data.count < 256 ? 1 : 2) + data.count
        let recorded = Array(plain[start..<plain.count - (payload.signed ? 65 : 0)])
        #expect(PayloadFrame.encode(data, signedBy: signer) { count in Array(recorded.prefix(count)) } == plain)
        #expect(plain.count + overhead == payload.encodedLength)
    }

    @Test func recordedMessagesAreReadAndWrittenAlike() throws {
        let vectors = StatusGoVectors.recorded
        var count = 0
        for plain in vectors.messages.compactMap(\.payloadPlain) {
            let frame = try PayloadFrame(parsing: plain.bytes.bytes)
            #expect(frame.data == plain.data.bytes)
            #expect(try frame.signer()?.uncompressed == plain.signerPublicKey.bytes)
            let signer = try vectors.pair(publicKey: plain.signerPublicKey)
            var asked = 0
            let encoded = PayloadFrame.encode(frame.data, signedBy: signer) { count in
                asked = count
                return plain.padding.bytes
            }
            #expect(encoded == plain.bytes.bytes)
            #expect(asked == plain.padding.bytes.count)
            count += 1
        }
        #expect(count > 150)
    }

    @Test(arguments: [0, 1, 187, 188, 189, 190, 191, 253, 254, 255, 256, 65_535, 65_536, 70_000], [true, false])
    func framesOfAllLengthsAreMultiplesOf256AndComeBack(count: Int, isSigned: Bool) throws {
        let data = randomBytes(count)
        let lengthByteCount = count < 256 ? 1 : count < 65_536 ? 2 : 3
        let bytes = PayloadFrame.encode(data, signedBy: isSigned ? Self.key : nil, padding: randomBytes)
        #expect(bytes.count.isMultiple(of: 256))
        #expect(bytes[0] == UInt8(lengthByteCount) | (isSigned ? 4 : 0))
        let length = bytes[1...lengthByteCount].reversed().reduce(0) { $0 << 8 | Int($1) }
        #expect(length == count)
        let padding = bytes.count - 1 - lengthByteCount - count - (isSigned ? 65 : 0)
        #expect((1...256).contains(padding))
        let frame = try PayloadFrame(parsing: bytes)
        #expect(frame.data == data)
        #expect(try frame.signer() == (isSigned ? Self.key.publicKey : nil))
        #expect((frame.signature != nil) == isSigned)
    }

    @Test func anExactMultipleGets256BytesMore() {
        // Flags, one length byte and the signature take 67 bytes.
        #expect(PayloadFrame.encode(Self.zeros(188), signedBy: Self.key).count == 256)
        #expect(PayloadFrame.encode(Self.zeros(189), signedBy: Self.key).count == 512)
        #expect(PayloadFrame.encode(Self.zeros(253), signedBy: nil, padding: Self.zeros).count == 256)
        #expect(PayloadFrame.encode(Self.zeros(254), signedBy: nil, padding: Self.zeros).count == 512)
    }

    @Test func everyTruncationOfASignedFrameIsRefused() {
        // In any truncated frame, the last 65 bytes are not the key's signature of the rest.
        let bytes = PayloadFrame.encode([1, 2, 3], signedBy: Self.key)
        for count in bytes.indices {
            let frame = try? PayloadFrame(parsing: Array(bytes.prefix(count)))
            #expect((try? frame?.signer()) != Self.key.publicKey, "\(count) bytes")
            if count < 1 + 1 + 3 + 65 {
                #expect(throws: PayloadError.truncated, "\(count) bytes") { try PayloadFrame(parsing: Array(bytes.prefix(count))) }
            }
        }
    }

    @Test func everyTruncationIntoTheDataOfAnUnsignedFrameIsRefused() throws {
        let data = Self.zeros(300)
        let bytes = PayloadFrame.encode(data, signedBy: nil, padding: randomBytes)
        for count in 0..<303 {
            #expect(throws: PayloadError.truncated, "\(count) bytes") { try PayloadFrame(parsing: Array(bytes.prefix(count))) }
        }
        // Receivers ignore the padding, and accept its absence.
        #expect(try PayloadFrame(parsing: Array(bytes.prefix(303))).data == data)
    }

    @Test func theSignatureCoversEveryByteBeforeIt() {
        let bytes = PayloadFrame.encode([1, 2, 3], signedBy: Self.key)
        for position in 1..<bytes.count {
            var altered = bytes
            altered[position] ^= 1
            #expect((try? PayloadFrame(parsing: altered).signer()) != Self.key.publicKey, "byte \(position)")
        }
    }

    @Test(arguments: [UInt8(4), 27, 255])
    func aSignatureWithAnotherVIsBad(_ v: UInt8) {
        let bytes = PayloadFrame.encode([1, 2, 3], signedBy: Self.key).dropLast() + [v]
        #expect(throws: PayloadError.badSignature) { try PayloadFrame(parsing: Array(bytes)) }
    }

    @Test func aSignatureFromWhichNoKeyCanBeRecoveredIsFoundOnlyByTheSigner() throws {
        for signature in [[UInt8](repeating: 0xFF, count: 64) + [3], Self.zeros(65)] {
            let frame = try PayloadFrame(parsing: [0b101, 1, 42, 0] + signature)
            #expect(frame.data == [42] && frame.signature?.bytes == signature)
            #expect(throws: PayloadError.badSignature) { try frame.signer() }
        }
    }

    @Test func noLengthBytesAreTruncated() {
        #expect(throws: PayloadError.truncated) { try PayloadFrame(parsing: Self.zeros(256)) }
        #expect(throws: PayloadError.truncated) { try PayloadFrame(parsing: [4] + Self.zeros(255)) }
    }

    @Test func otherFlagsAreIgnored() throws {
        #expect(try PayloadFrame(parsing: [0b1111_1001, 1, 42, 0]).data == [42])
    }

    @Test func theLongestLengthIsCheckedAgainstTheFrame() throws {
        #expect(throws: PayloadError.truncated) { try PayloadFrame(parsing: [3, 0xFF, 0xFF, 0xFF] + Self.zeros(100)) }
        // A length need not be in its shortest form.
        #expect(try PayloadFrame(parsing: [3, 1, 0, 0, 42]).data == [42])
    }

    @Test func damagedFramesNeverTrap() {
        let bytes = PayloadFrame.encode(Array(0..<100), signedBy: Self.key)
        var generator = SeededGenerator(seed: 2)
        for _ in 0..<2000 {
            _ = try? PayloadFrame(parsing: generator.damaged(bytes))
            _ = try? PayloadFrame(parsing: generator.bytes(Int.random(in: 0..<150, using: &generator)))
        }
    }
}
