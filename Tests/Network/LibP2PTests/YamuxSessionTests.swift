import NIOCore
import TestSupport
import Testing

@testable import LibP2P

@Suite struct YamuxSessionTests {
    /// A peer's frame, encoded manually.
    private func frame(_ type: UInt8, _ flags: UInt16, _ stream: UInt32, _ length: UInt32, _ data: [UInt8] = []) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeMultipleIntegers(UInt8(0), type, flags, stream, length)
        return Array(buffer: buffer) + data
    }

    private func receive(_ bytes: [UInt8], _ session: inout YamuxSession) throws -> [YamuxSession.Event] {
        var input = ByteBuffer(bytes: bytes)
        var events: [YamuxSession.Event] = []
        try session.receive(&input, &events)
        return events
    }

    private func output(_ session: inout YamuxSession) -> [UInt8] {
        defer { session.output.clear() }
        return Array(buffer: session.output)
    }

    private func responder(_ limits: YamuxSession.Limits = .init()) -> YamuxSession { YamuxSession(.responder, limits: limits) }

    @Test func aStreamFromThePeer() throws {
        var session = responder()
        #expect(try receive(frame(1, 1, 1, 0), &session) == [.opened(1)])
        #expect(output(&session) == frame(1, 2, 1, 0))
        #expect(try receive(frame(0, 0, 1, 3, [1, 2, 3]), &session) == [.data(1, ByteBuffer(bytes: [1, 2, 3]))])
        session.consumed(3, on: 1)
        var data = ByteBuffer(bytes: [4, 5])
        #expect(session.send(&data, on: 1) == 2)
        session.finish(1)
        #expect(output(&session) == frame(0, 0, 1, 2, [4, 5]) + frame(1, 4, 1, 0))
        #expect(try receive(frame(0, 4, 1, 0), &session) == [.finished(1)])
        #expect(session.streamCount == 0)
    }

    @Test func aStreamFromUs() throws {
        var session = YamuxSession(.initiator)
        #expect(session.open() == 1)
        #expect(session.open() == 3)
        #expect(output(&session) == frame(1, 1, 1, 0) + frame(1, 1, 3, 0))
        // Acknowledged by a data frame that also ends the stream.
        #expect(try receive(frame(0, 2 | 4, 1, 1, [9]), &session) == [.data(1, ByteBuffer(bytes: [9])), .finished(1)])
        session.finish(1)
        #expect(session.streamCount == 2)
        session.consumed(1, on: 1)
        #expect(session.streamCount == 1)
    }

    @Test func dataAndOpeningInOneFrame() throws {
        var session = responder()
        #expect(try receive(frame(0, 1, 1, 2, [1, 2]), &session) == [.opened(1), .data(1, ByteBuffer(bytes: [1, 2]))])
    }

    @Test func framesMayComeInPieces() throws {
        var session = responder()
        var input = ByteBuffer()
        var data: [UInt8] = []
        var kinds: [String] = []
        for byte in frame(1, 1, 1, 0) + frame(0, 4, 1, 5, [1, 2, 3, 4, 5]) + frame(2, 1, 0, 7) {
            input.writeInteger(byte)
            var events: [YamuxSession.Event] = []
            try session.receive(&input, &events)
            for event in events {
                if case .data(1, let piece) = event { data += Array(buffer: piece) } else { kinds.append("\(event)") }
            }
        }
        #expect(data == [1, 2, 3, 4, 5])
        #expect(kinds == ["opened(1)", "finished(1)"])
        #expect(output(&session) == frame(1, 2, 1, 0) + frame(2, 2, 0, 7))
    }

    @Test func theWindowBoundsWhatWeSend() throws {
        var session = responder()
        _ = try receive(frame(1, 1, 1, 0), &session)
        var data = ByteBuffer(repeating: 7, count: 300_000)
        var sent = 0
        while case let count = session.send(&data, on: 1), count > 0 {
            #expect(count <= YamuxSession.dataLimit)
            sent += count
        }
        #expect(sent == 256_000)
        session.output.clear()
        #expect(try receive(frame(1, 0, 1, 100), &session) == [.windowGrew(1)])
        #expect(session.send(&data, on: 1) == 100)
        // A window above the maximum stays at the maximum.
        _ = try receive(frame(1, 0, 1, .max) + frame(1, 0, 1, .max), &session)
        #expect(session.sendWindow(1) == Int(UInt32.max))
    }

    @Test func windowUpdatesAreSentForHalfAWindow() throws {
        var session = responder()
        _ = try receive(frame(1, 1, 1, 0), &session)
        session.output.clear()
        let half = 128 * 1024
        _ = try receive(frame(0, 0, 1, UInt32(2 * half), [UInt8](repeating: 0, count: 2 * half)), &session)
        session.consumed(half - 1, on: 1)
        #expect(session.output.readableBytes == 0)
        session.consumed(1, on: 1)
        #expect(output(&session) == frame(1, 0, 1, UInt32(half)))
        // Consuming more than was received has no effect.
        session.consumed(10 * half, on: 1)
        #expect(output(&session) == frame(1, 0, 1, UInt32(half)))
    }

    @Test func anOverrunWindowEndsTheSession() throws {
        var session = responder()
        _ = try receive(frame(1, 1, 1, 0), &session)
        #expect(throws: YamuxError.windowExceeded) { try receive(frame(0, 0, 1, 256 * 1024 + 1), &session) }
        session = responder()
        // The same for an unknown stream.
        #expect(throws: YamuxError.windowExceeded) { try receive(frame(0, 0, 1, .max), &session) }
    }

    @Test(arguments: [[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], [0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]] as [[UInt8]])
    func malformedHeadersEndTheSession(header: [UInt8]) {
        var session = responder()
        #expect(throws: YamuxError.malformedFrame) { try receive(header, &session) }
    }

    @Test(arguments: [0, 2, 4] as [UInt32])
    func streamIDsOfTheOtherSideEndTheSession(number: UInt32) {
        var session = responder()
        #expect(throws: YamuxError.invalidStream) { try receive(frame(1, 1, number, 0), &session) }
    }

    @Test func aStreamIDInUseEndsTheSession() {
        var session = responder()
        #expect(throws: YamuxError.invalidStream) { try receive(frame(1, 1, 1, 0) + frame(1, 1, 1, 0), &session) }
    }

    @Test func streamsOverTheLimitAreReset() throws {
        var session = responder(.init(inboundStreams: 2))
        let events = try receive((0..<5).flatMap { frame(1, 1, 2 * $0 + 1, 0) }, &session)
        #expect(events == [.opened(1), .opened(3)])
        #expect(output(&session) == frame(1, 2, 1, 0) + frame(1, 2, 3, 0) + [5, 7, 9].flatMap { frame(1, 8, $0, 0) })
        session.reset(1)
        #expect(try receive(frame(1, 1, 11, 0), &session) == [.opened(11)])
    }

    @Test func aHundredThousandStreamsCostNothing() throws {
        var session = responder()
        var opened = 0
        for start in stride(from: UInt32(1), to: 200_000, by: 2_000) {
            let bytes = (0..<1_000).flatMap { frame(1, 1, start + 2 * $0, 0) }
            opened += try receive(bytes, &session).count
            session.output.clear()
        }
        #expect(opened == 256 && session.streamCount == 256)
    }

    @Test func unreadAnswersEndTheSession() {
        var session = responder()
        #expect(throws: YamuxError.answersUnread) {
            _ = try receive((0..<10_000).flatMap { _ in frame(2, 1, 0, 1) }, &session)
        }
        #expect(session.output.readableBytes <= 64 * 1024 + 12)
    }

    @Test func tooMuchUnreadDataResetsItsStream() throws {
        var session = responder(.init(bufferedBytes: 300_000))
        _ = try receive(frame(1, 1, 1, 0) + frame(1, 1, 3, 0), &session)
        session.output.clear()
        let window = [UInt8](repeating: 0, count: 256 * 1024)
        _ = try receive(frame(0, 0, 1, UInt32(window.count), window), &session)
        #expect(try receive(frame(0, 0, 3, UInt32(window.count), window), &session) == [.reset(3)])
        #expect(output(&session) == frame(1, 8, 3, 0))
        // There is room again after the first stream's data was read, or the stream was reset.
        session.reset(1)
        _ = try receive(frame(1, 1, 5, 0), &session)
        #expect(try receive(frame(0, 0, 5, 1, [1]), &session).count == 1)
    }

    @Test func resetsAndEndsOfUnknownStreamsAreIgnored() throws {
        var session = responder()
        #expect(try receive(frame(1, 8, 1, 0) + frame(0, 4, 3, 0) + frame(1, 0, 5, 9) + frame(0, 0, 7, 2, [1, 2]), &session) == [])
        #expect(session.output.readableBytes == 0)
    }

    @Test func aResetEndsAStream() throws {
        var session = responder()
        #expect(try receive(frame(1, 1, 1, 0) + frame(1, 8, 1, 0), &session) == [.opened(1), .reset(1)])
        #expect(session.streamCount == 0)
        session.output.clear()
        session.reset(1)
        session.finish(1)
        session.consumed(5, on: 1)
        var data = ByteBuffer(bytes: [1])
        #expect(session.send(&data, on: 1) == 0)
        #expect(session.output.readableBytes == 0)
    }

    @Test func noStreamIsOpenedAfterAGoAway() throws {
        var session = responder()
        #expect(try receive(frame(3, 0, 0, 2), &session) == [.goAway(code: 2)])
        #expect(session.open() == nil)
    }

    @Test func ownStreamsHaveALimit() {
        var session = YamuxSession(.responder, limits: .init(outboundStreams: 2))
        #expect(session.open() == 2)
        #expect(session.open() == 4)
        #expect(session.open() == nil)
        session.reset(2)
        #expect(session.open() == 6)
    }

    @Test func damagedFramesTrapNothing() {
        var random = SeededGenerator(seed: 4)
        let good =
            frame(1, 1, 1, 0) + frame(0, 0, 1, 3, [1, 2, 3]) + frame(2, 1, 0, 9) + frame(1, 0, 1, 77) + frame(0, 1 | 4, 3, 2, [1, 2])
            + frame(1, 8, 3, 0) + frame(3, 0, 0, 0)
        for _ in 0..<3_000 {
            var session = responder()
            var input = ByteBuffer(bytes: random.damaged(good))
            var events: [YamuxSession.Event] = []
            try? session.receive(&input, &events)
            for event in events {
                if case .data(let id, let data) = event { session.consumed(data.readableBytes, on: id) }
            }
            #expect(session.streamCount <= 4)
        }
    }
}
