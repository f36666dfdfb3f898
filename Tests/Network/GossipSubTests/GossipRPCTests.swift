import Core
import TestSupport
import Testing
import WakuCrypto

@testable import GossipSub

/// A manually encoded field: its tag byte, a length of one byte, and its content.
func field(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    precondition(content.count < 128)
    return [tag, UInt8(content.count)] + content
}

@Suite("RPC frames")
struct GossipRPCTests {
    private let topic = Array("/t".utf8)
    private let id = [UInt8](repeating: 7, count: 32)

    @Test("A frame with all known fields and unknown ones, byte by byte")
    func everything() throws {
        let frame: [UInt8] =
            field(0x0A, [0x08, 1] + field(0x12, topic))
            + field(0x0A, [0x08, 0] + field(0x12, topic))
            // Field 9 as a varint, field 10 with 4 bytes, field 11 with 8, field 12 with bytes: all are skipped.
            + [0x48, 0xAC, 0x02] + [0x55, 1, 2, 3, 4] + [0x59, 1, 2, 3, 4, 5, 6, 7, 8] + field(0x62, [1, 2, 3])
            + field(0x12, field(0x12, [0xDE, 0xAD]) + field(0x22, topic))
            + field(
                0x1A,
                field(0x0A, field(0x0A, topic) + field(0x12, id) + field(0x12, [1, 2, 3]))
                    + field(0x12, field(0x0A, id)))
            + field(
                0x1A,
                field(0x1A, field(0x0A, topic))
                    + field(0x22, field(0x0A, topic) + field(0x12, field(0x0A, [1])) + [0x18, 60])
                    + field(0x2A, field(0x0A, id)))
        let rpc = try GossipRPC(parsing: frame)
        let known = try #require(MessageID(id))
        #expect(rpc.subscriptions == [.init(topic: "/t", isOn: true), .init(topic: "/t", isOn: false)])
        #expect(rpc.publications.map(\.topic) == ["/t"])
        #expect(rpc.publications.map { Array(rpc.frame[$0.data]) } == [[0xDE, 0xAD]])
        #expect(rpc.publications.map(\.isAuthored) == [false])
        // Ids of another length match no message here.
        #expect(rpc.ihave == [.init(topic: "/t", ids: [known])])
        #expect(rpc.iwant == [known])
        #expect(rpc.graft == ["/t"])
        #expect(rpc.prune == [.init(topic: "/t", backoff: .seconds(60))])
        #expect(rpc.idontwant == [known])
    }

    @Test(
        "Author, sequence number, signature and key mark a message as authored, even when empty",
        arguments: [UInt8(0x0A), 0x1A, 0x2A, 0x32])
    func authors(tag: UInt8) throws {
        let frame = field(0x12, field(0x12, [1]) + field(0x22, topic) + field(tag, []))
        #expect(try GossipRPC(parsing: frame).publications.map(\.isAuthored) == [true])
    }

    @Test("An empty frame is valid")
    func empty() throws {
        let rpc = try GossipRPC(parsing: [])
        #expect(rpc.publications.isEmpty && rpc.subscriptions.isEmpty)
    }

    @Test(
        "Other protobufs are refused",
        arguments: [
            [0x12, 5, 1], [0x0A], [0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
            // Field number 0, a group without an end, an end without a group, a subscription that is a number, a message without a topic,
            // a topic that is a number.
            [0x02, 0], [0x0B], [0x0B, 0x0B, 0x0C], [0x0C], [0x08, 1], [0x12, 3, 0x12, 1, 9], [0x12, 2, 0x20, 1],
        ] as [[UInt8]])
    func malformed(frame: [UInt8]) {
        #expect(throws: ProtobufError.malformed) { try GossipRPC(parsing: frame) }
    }

    /// go-libp2p forwards unknown fields of a message: peers must not be disconnected for them.
    @Test("Unknown fields of a message are skipped, groups and numbers of more than 29 bits too")
    func unknownFields() throws {
        let group: [UInt8] = [0x3B, 0x08, 1, 0x43, 0x12, 1, 9, 0x44, 0x3D, 1, 2, 3, 4, 0x39, 1, 2, 3, 4, 5, 6, 7, 8, 0x3C]
        let large: [UInt8] = [0x80, 0x80, 0x80, 0x80, 0x10, 5]
        let frame = field(0x12, group + field(0x12, [1]) + large + field(0x22, topic))
        let rpc = try GossipRPC(parsing: frame)
        #expect(rpc.publications.map { Array(rpc.frame[$0.data]) } == [[1]])
        #expect(rpc.publications.map(\.isAuthored) == [false])
    }

    @Test("Topics must be UTF-8 and within the length limit")
    func topics() {
        #expect(throws: ProtobufError.notUTF8) { try GossipRPC(parsing: field(0x12, field(0x22, [0xFF]))) }
        var writer = ProtobufWriter()
        writer.field(1) { (option: inout ProtobufWriter) in
            option.field(1, true)
            option.field(2, String(repeating: "t", count: 257))
        }
        #expect(throws: ProtobufError.tooLong) { try GossipRPC(parsing: writer.bytes) }
    }

    @Test("Lists are limited")
    func limits() throws {
        let messages = [[UInt8]](repeating: field(0x12, field(0x22, topic)), count: 4097)
        #expect(throws: ProtobufError.tooMany) { try GossipRPC(parsing: Array(messages.joined())) }
        let subscriptions = [[UInt8]](repeating: field(0x0A, field(0x12, topic)), count: 1025)
        #expect(throws: ProtobufError.tooMany) { try GossipRPC(parsing: Array(subscriptions.joined())) }
        for tag in [0x0A, 0x1A, 0x22] as [UInt8] {
            var writer = ProtobufWriter()
            writer.field(3, Array([[UInt8]](repeating: field(tag, field(0x0A, topic)), count: 1025).joined()))
            #expect(throws: ProtobufError.tooMany) { try GossipRPC(parsing: writer.bytes) }
        }
        var writer = ProtobufWriter()
        writer.field(3) { (control: inout ProtobufWriter) in
            control.field(2, Array([[UInt8]](repeating: field(0x0A, id), count: 6000).joined()))
        }
        #expect(try GossipRPC(parsing: writer.bytes).iwant.count == 5000)
        #expect(throws: ProtobufError.tooLong) { try GossipRPC(parsing: [UInt8](repeating: 0, count: GossipRPC.maximumByteCount + 1)) }
    }

    @Test("Damaged frames are refused or parsed, and never trap", arguments: 1...20 as ClosedRange<UInt64>)
    func damaged(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let known = MessageID(of: [1][...])
        var queue = OutboundQueue()
        for item in [
            .subscription(topic: "/t", isOn: true), .graft(topic: "/t"), .prune(topic: "/t", backoff: .seconds(3)),
            .message(GossipMessage(topic: "/t", data: [1, 2, 3])), .ihave(topic: "/t", ids: [known]), .iwant([known]), .idontwant([known]),
        ] as [Outgoing] {
            #expect(queue.append(item) == .kept)
        }
        let frame = queue.nextFrame() ?? []
        for _ in 0..<500 {
            let damaged = generator.damaged(frame)
            _ = try? GossipRPC(parsing: damaged)
            var framing = FrameSplitter(limit: 1000)
            framing.append(damaged)
            while let frame = try? framing.next() { _ = try? GossipRPC(parsing: frame) }
        }
    }

    /// A frame may have thousands of messages on topics that nobody subscribed to.
    @Test("Ids are computed while parsing for long data only")
    func ids() throws {
        for (byteCount, isLong) in [(1, false), (4096, false), (4097, true)] {
            let data = [UInt8](repeating: 1, count: byteCount)
            var writer = ProtobufWriter()
            writer.field(2) { (message: inout ProtobufWriter) in
                message.field(2, data)
                message.field(4, "/t")
            }
            #expect(try GossipRPC(parsing: writer.bytes).publications.map(\.id) == [isLong ? MessageID(of: data[...]) : nil])
        }
    }

    @Test("The message id is SHA-256 of the data")
    func identifier() throws {
        let message = GossipMessage(topic: "/t", data: Array("abc".utf8))
        #expect(message.id.description == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(message.id.bytes == SHA256.hash(Array("abc".utf8)))
        #expect(Array(message.data) == Array("abc".utf8))
        #expect(message.field == [0x12, 9, 0x12, 3, 0x61, 0x62, 0x63, 0x22, 2, 0x2F, 0x74])
    }
}
