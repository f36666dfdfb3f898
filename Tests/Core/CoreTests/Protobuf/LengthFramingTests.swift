import Core
import TestSupport
import Testing

@Suite("Frames on a stream")
struct LengthFramingTests {
    @Test("Pieces of any size make the same frames", arguments: [1, 2, 3, 7, 1000])
    func pieces(size: Int) throws {
        let frames: [[UInt8]] = [[1, 2, 3], [], [UInt8](repeating: 9, count: 300), [4]]
        let bytes = frames.flatMap { LengthFraming.framed($0) }
        var framing = FrameSplitter(limit: 300)
        var read: [[UInt8]] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            framing.append(bytes[start..<min(start + size, bytes.count)])
            while let frame = try framing.next() { read.append(frame) }
        }
        #expect(read == frames)
        #expect(framing.pendingByteCount == 0)
    }

    @Test("A length over the limit or of more than 5 bytes is refused before its frame arrives")
    func limits() throws {
        var framing = FrameSplitter(limit: 100)
        framing.append([101])
        #expect(throws: ProtobufError.tooLong) { try framing.next() }
        framing = FrameSplitter(limit: 100)
        framing.append([0xFF, 0xFF, 0xFF, 0xFF])
        #expect(try framing.next() == nil)
        framing.append([0xFF])
        #expect(throws: ProtobufError.malformed) { try framing.next() }
    }
}
