import Core
import TestSupport
import Testing

@testable import GossipSub

@Suite("Outbound queue")
struct OutboundQueueTests {
    private func message(_ byteCount: Int, _ seed: UInt8 = 0) -> GossipMessage {
        GossipMessage(topic: "/t", data: [UInt8](repeating: seed, count: byteCount))
    }

    private func id(_ number: UInt8) -> MessageID { MessageID(of: [number][...]) }

    /// All frames, parsed.
    private func frames(_ queue: inout OutboundQueue) throws -> [GossipRPC] {
        var framing = FrameSplitter(limit: GossipRPC.maximumByteCount)
        var frames: [GossipRPC] = []
        while let bytes = queue.nextFrame() {
            framing.append(bytes)
            while let frame = try framing.next() { frames.append(try GossipRPC(parsing: frame)) }
        }
        return frames
    }

    @Test("Queued items are combined into one frame and parsed unchanged")
    func together() throws {
        var queue = OutboundQueue()
        let sent = message(3)
        for item in [
            .subscription(topic: "/t", isOn: true), .graft(topic: "/a"), .prune(topic: "/b", backoff: .seconds(61)), .message(sent),
            .reply(message(4)), .ihave(topic: "/t", ids: [id(1), id(2)]), .iwant([id(3)]), .idontwant([id(4)]),
        ] as [Outgoing] {
            #expect(queue.append(item) == .kept)
        }
        let frames = try frames(&queue)
        let frame = try #require(frames.first)
        #expect(frames.count == 1)
        #expect(frame.subscriptions == [.init(topic: "/t", isOn: true)])
        #expect(frame.graft == ["/a"])
        #expect(frame.prune == [.init(topic: "/b", backoff: .seconds(61))])
        #expect(frame.publications.map(\.data.count) == [3, 4])
        #expect(frame.ihave == [.init(topic: "/t", ids: [id(1), id(2)])])
        #expect(frame.iwant == [id(3)])
        #expect(frame.idontwant == [id(4)])
        #expect(queue.isEmpty && queue.byteCount == 0)
    }

    @Test("Frames are filled up to their limit; larger messages get a frame of their own")
    func sizes() throws {
        var limits = OutboundQueue.Limits()
        limits.frameByteCount = 1000
        var queue = OutboundQueue(limits: limits)
        for size in [400, 400, 400, 5000, 10] { _ = queue.append(.message(message(size))) }
        _ = queue.append(.graft(topic: "/t"))
        #expect(try frames(&queue).map { $0.publications.map(\.data.count) } == [[400, 400], [400], [5000], [10]])
    }

    @Test("A large message is copied piece by piece, and counts until the last one")
    func pieces() throws {
        var limits = OutboundQueue.Limits()
        limits.frameByteCount = 1000
        var queue = OutboundQueue(limits: limits)
        let large = message(5000)
        _ = queue.append(.reply(large))
        var pieces: [[UInt8]] = []
        while let piece = queue.nextFrame() {
            pieces.append(piece)
            if pieces.count == 1 { _ = queue.append(.graft(topic: "/t")) }
            #expect(queue.byteCount == (pieces.count < 6 ? large.byteCount : 0) + (pieces.count < 7 ? 64 : 0))
            #expect(queue.isEmpty == (pieces.count == 7))
        }
        // The frame is not interrupted.
        #expect(pieces.dropLast().flatMap(\.self) == LengthFraming.framed(large.field))
        #expect(pieces.count == 7 && pieces.allSatisfy { $0.count <= 1005 })
    }

    @Test("A queue that is shortened keeps control messages, a frame that was begun and recent own messages")
    func shortened() throws {
        var limits = OutboundQueue.Limits()
        limits.frameByteCount = 1000
        var queue = OutboundQueue(limits: limits)
        func own(_ byteCount: Int, until: Instant) -> GossipMessage {
            let data = [UInt8](repeating: 9, count: byteCount)
            return GossipMessage(topic: "/t", data: data[...], id: MessageID(of: data[...]), keptUntil: until)
        }
        for message in [message(5000), message(100), own(10, until: .zero + .seconds(1)), own(11, until: .zero + .seconds(2))] {
            _ = queue.append(.message(message))
        }
        for item in [.reply(message(200)), .ihave(topic: "/t", ids: [id(1)]), .iwant([id(2)])] as [Outgoing] { _ = queue.append(item) }
        let first = queue.nextFrame() ?? []
        _ = queue.append(.graft(topic: "/t"))
        queue.shorten(at: .zero + .seconds(1))
        var framing = FrameSplitter(limit: GossipRPC.maximumByteCount)
        framing.append(first)
        while let bytes = queue.nextFrame() { framing.append(bytes) }
        let large = try GossipRPC(parsing: try #require(try framing.next()))
        let rest = try GossipRPC(parsing: try #require(try framing.next()))
        #expect(large.publications.map(\.data.count) == [5000])
        #expect(rest.publications.map(\.data.count) == [11] && rest.graft == ["/t"] && rest.ihave.isEmpty && rest.iwant.isEmpty)
        let further = try framing.next()
        #expect(further == nil && queue.isEmpty && queue.byteCount == 0)
    }

    @Test("Control messages count towards the limit of a frame")
    func sizeOfControl() throws {
        var limits = OutboundQueue.Limits()
        limits.frameByteCount = 1000
        var queue = OutboundQueue(limits: limits)
        for number in 10..<40 { #expect(queue.append(.graft(topic: "/topic/of/this/number/\(number)")) == .kept) }
        #expect(queue.append(.message(message(400))) == .kept)
        let frames = try frames(&queue)
        #expect(frames.map(\.graft.count) == [30, 0])
        #expect(frames.map(\.publications.count) == [0, 1])
    }

    @Test("Unwanted messages are announced as long as a frame takes them")
    func unwanted() throws {
        var queue = OutboundQueue()
        let ids = (0..<OutboundQueue.itemsPerFrame).map { MessageID(of: [UInt8($0 & 255), UInt8($0 >> 8)][...]) }
        #expect(queue.append(.idontwant(ids)) == .kept)
        #expect(queue.append(.idontwant([id(1)])) == .dropped)
        #expect(try frames(&queue).map(\.idontwant) == [ids])
        #expect(queue.append(.idontwant([id(1)])) == .kept)
    }

    @Test("When full, gossip and replies are dropped first, then messages; control overflows")
    func priorities() throws {
        var limits = OutboundQueue.Limits()
        limits.messageByteCount = 3000
        limits.controlCount = 2
        limits.gossipIDCount = 3
        var queue = OutboundQueue(limits: limits)
        #expect(queue.append(.ihave(topic: "/t", ids: [id(1), id(2)])) == .kept)
        #expect(queue.append(.iwant([id(3), id(4)])) == .dropped)
        #expect(queue.append(.reply(message(1000, 1))) == .kept)
        #expect(queue.append(.message(message(1000, 2))) == .kept)
        // The reply and the gossip are dropped to make room.
        #expect(queue.append(.message(message(1500, 3))) == .dropped)
        // The newest message is dropped.
        #expect(queue.append(.message(message(1000, 4))) == .dropped)
        #expect(queue.append(.reply(message(1000, 5))) == .dropped)
        #expect(queue.append(.graft(topic: "/t")) == .kept)
        #expect(queue.append(.graft(topic: "/t")) == .kept)
        #expect(queue.append(.graft(topic: "/t")) == .overflow)
        let frame = try #require(try frames(&queue).first)
        #expect(frame.publications.map(\.data.count) == [1000, 1500])
        #expect(frame.ihave.isEmpty && frame.graft.count == 2)
    }

    @Test("Large gossip is split over frames")
    func gossip() throws {
        var queue = OutboundQueue()
        for start in 0..<5 {
            let ids = (0..<1000).map { (number: Int) in MessageID(of: [UInt8(start), UInt8(number & 255), UInt8(number >> 8)][...]) }
            #expect(queue.append(.ihave(topic: "/t", ids: ids)) == .kept)
        }
        let frames = try frames(&queue)
        #expect(frames.flatMap(\.ihave).flatMap(\.ids).count == 5000)
        #expect(frames.allSatisfy { $0.frame.count <= 64 << 10 })
    }
}
