import NIOCore
import Wire
import TestSupport
import Testing

@testable import LibP2P

@Suite struct EncodingTests {
    /// draft-msporny-base58-03, test vectors.
    @Test(arguments: [
        (Array("Hello World!".utf8), "2NEpo7TZRRrLZSi2U"),
        (Array("The quick brown fox jumps over the lazy dog.".utf8), "USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z"),
        (hex("0000287fb4cd"), "11233QC4"), ([], ""), ([0, 0], "11"),
    ])
    func base58(bytes: [UInt8], text: String) {
        #expect(Base58.encode(bytes) == text)
        #expect(Base58.decode(text) == bytes)
    }

    @Test(arguments: ["0", "O", "I", "l", "a b", "é"])
    func whatIsNotBase58IsRefused(text: String) {
        #expect(Base58.decode(text) == nil)
    }

    /// RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb"), ("foobar", "mzxw6ytboi"),
    ])
    func base32(plain: String, text: String) {
        #expect(Base32.encode(plain.utf8) == text)
        #expect(Base32.decode(text) == Array(plain.utf8))
    }

    @Test(arguments: ["m", "mz", "mzx", "MY", "my=", "m1"])
    func whatIsNotBase32IsRefused(text: String) {
        #expect(Base32.decode(text) == nil)
    }

    /// multiformats/unsigned-varint.
    @Test(
        arguments: [
            (1, [1]), (127, [0x7F]), (128, [0x80, 1]), (255, [0xFF, 1]), (300, [0xAC, 2]), (16_384, [0x80, 0x80, 1]),
            (UInt64(Int64.max), [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        ] as [(UInt64, [UInt8])])
    func varints(value: UInt64, bytes: [UInt8]) throws {
        var buffer = ByteBuffer()
        buffer.writeVarint(value)
        #expect(Array(buffer: buffer) == bytes)
        let read = try #require(try buffer.getVarint())
        #expect(read.value == value && read.byteCount == bytes.count)
        #expect(try ByteBuffer(bytes: bytes.dropLast()).getVarint() == nil)
    }

    @Test(arguments: [[0x80, 0], [0xFF, 0x80, 0], [UInt8](repeating: 0x80, count: 9) + [1]] as [[UInt8]])
    func varintsOfTheWrongLengthAreRefused(bytes: [UInt8]) {
        #expect(throws: VarintError.malformed) { try ByteBuffer(bytes: bytes).getVarint() }
    }
}
