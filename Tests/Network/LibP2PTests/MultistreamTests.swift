import NIOCore
import Testing

@testable import LibP2P

@Suite struct MultistreamTests {
    private func bytes(_ lines: String...) -> ByteBuffer {
        var buffer = ByteBuffer()
        for line in lines { buffer.writeImmutableBuffer(MultistreamNegotiation.line(line)) }
        return buffer
    }

    private func none(_: String) -> Bool { false }

    @Test func theLinesAreThoseOfTheSpecification() {
        #expect(Array(buffer: bytes("/multistream/1.0.0")) == [19] + Array("/multistream/1.0.0\n".utf8))
        #expect(MultistreamNegotiation(proposing: ["/a", "/b"]).opening == bytes("/multistream/1.0.0", "/a"))
        #expect(MultistreamNegotiation.responder().opening == bytes("/multistream/1.0.0"))
    }

    @Test func theFirstCommonProposalIsTaken() throws {
        var initiator = MultistreamNegotiation(proposing: ["/a", "/b", "/c"])
        var responder = MultistreamNegotiation.responder()
        var toResponder = initiator.opening
        var toInitiator = responder.opening
        var agreed: (String?, String?) = (nil, nil)
        for _ in 0..<3 {
            agreed.1 = try agreed.1 ?? responder.receive(&toResponder, output: &toInitiator) { $0 == "/c" || $0 == "/b" }
            agreed.0 = try agreed.0 ?? initiator.receive(&toInitiator, output: &toResponder, accepts: none)
        }
        #expect(agreed.0 == "/b" && agreed.1 == "/b")
        #expect(toResponder.readableBytes == 0 && toInitiator.readableBytes == 0)
    }

    @Test func bytesAfterTheNegotiationAreNotConsumed() throws {
        var responder = MultistreamNegotiation.responder()
        var input = bytes("/multistream/1.0.0", "/a")
        input.writeString("data")
        var output = ByteBuffer()
        #expect(try responder.receive(&input, output: &output) { $0 == "/a" } == "/a")
        #expect(String(buffer: input) == "data")
        #expect(output == bytes("/a"))
    }

    @Test func bytesMayComeOneByOne() throws {
        var responder = MultistreamNegotiation.responder()
        var input = ByteBuffer()
        var output = ByteBuffer()
        var agreed: String?
        for byte in bytes("/multistream/1.0.0", "ls", "/x", "/a").readableBytesView {
            #expect(agreed == nil)
            input.writeInteger(byte)
            agreed = try responder.receive(&input, output: &output) { $0 == "/a" }
        }
        #expect(agreed == "/a")
        #expect(output == bytes("na", "na", "/a"))
    }

    @Test func refusalOfAllProposalsFailsTheNegotiation() {
        var initiator = MultistreamNegotiation(proposing: ["/a", "/b"])
        var output = ByteBuffer()
        var input = bytes("/multistream/1.0.0", "na", "na")
        #expect(throws: MultistreamError.refused) { try initiator.receive(&input, output: &output, accepts: none) }
        #expect(output == bytes("/b"))
    }

    @Test func otherAnswersThanTheProposalAreRefused() {
        for answer in ["/b", "", "NA"] {
            var initiator = MultistreamNegotiation(proposing: ["/a", "/b"])
            var output = ByteBuffer()
            var input = bytes("/multistream/1.0.0", answer)
            #expect(throws: MultistreamError.unexpectedAnswer) { try initiator.receive(&input, output: &output, accepts: none) }
        }
    }

    @Test func tooManyProposalsAreRefused() {
        var responder = MultistreamNegotiation.responder()
        var output = ByteBuffer()
        var input = bytes("/multistream/1.0.0")
        for _ in 0..<100 { input.writeImmutableBuffer(bytes("/x")) }
        #expect(throws: MultistreamError.tooManyProposals) { try responder.receive(&input, output: &output, accepts: none) }
        #expect(output.readableBytes <= MultistreamNegotiation.proposalLimit * 4)
    }

    @Test(arguments: [[0], [3, 65, 66, 67], [0x81, 8], [0xFF, 0xFF, 0xFF, 0x7F], [2, 0xFF, 10], [0x80, 0]] as [[UInt8]])
    func malformedLinesAreRefused(line: [UInt8]) {
        var responder = MultistreamNegotiation.responder()
        var output = ByteBuffer()
        var input = bytes("/multistream/1.0.0")
        input.writeBytes(line)
        #expect(throws: MultistreamError.malformedLine) { try responder.receive(&input, output: &output, accepts: none) }
    }

    @Test func anotherProtocolIsDetected() {
        var responder = MultistreamNegotiation.responder()
        var output = ByteBuffer()
        var input = bytes("/multistream/2.0.0")
        #expect(throws: MultistreamError.notMultistream) { try responder.receive(&input, output: &output, accepts: none) }
        responder = .responder()
        input = ByteBuffer(string: "G")
        #expect(throws: MultistreamError.notMultistream) { try responder.receive(&input, output: &output, accepts: none) }
    }
}
