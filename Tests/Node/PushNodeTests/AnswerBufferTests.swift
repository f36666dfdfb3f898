import StatusProtocol
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite struct AnswerBufferTests {
    private static let recipient = PrivateKey.generate().publicKey

    /// Its place among the relays, of an earlier publication, tells an answer from others.
    private static func item(_ mark: UInt8, byteCount: Int = 10) -> Publisher.Item {
        let payload = [UInt8](repeating: 0, count: byteCount)
        return Publisher.Item(
            answer: .test(payload, to: recipient, kind: .queryResponse),
            publications: [[Confirmations.Message(hash: MessageHash(bytes: []), places: [Int(mark)])]])
    }

    private static func marks(_ buffer: inout AnswerBuffer) -> [UInt8] {
        var marks: [UInt8] = []
        while let item = buffer.take() { marks += item.publications.flatMap(\.self).flatMap(\.places).map(UInt8.init) }
        return marks
    }

    @Test func dueAnswersAreTakenInOrderAndHeldOnesWhenDue() {
        var buffer = AnswerBuffer(capacity: 10, byteCapacity: 1_000, horizon: .milliseconds(500))
        #expect(buffer.add(Self.item(1), due: .milliseconds(500), at: .zero) == 0)
        #expect(buffer.add(Self.item(2), due: nil, at: .zero) == 0)
        #expect(buffer.add(Self.item(3), due: .milliseconds(300), at: .zero) == 0)
        // Known only after it was due: it leaves at once.
        #expect(buffer.add(Self.item(4), due: .milliseconds(100), at: .milliseconds(200)) == 0)
        #expect(Self.marks(&buffer) == [2, 4])
        buffer.release(at: .milliseconds(290))
        #expect(Self.marks(&buffer) == [])
        buffer.release(at: .milliseconds(310))
        #expect(Self.marks(&buffer) == [3])
        #expect(buffer.hasHeld && buffer.count == 1)
        buffer.release(at: .milliseconds(500))
        #expect(Self.marks(&buffer) == [1])
        #expect(!buffer.hasHeld && buffer.isEmpty && buffer.byteCount == 0)
    }

    @Test func theTimeForWhichAnAnswerWasHeldIsRecorded() {
        var buffer = AnswerBuffer(capacity: 10, byteCapacity: 1_000, horizon: .milliseconds(500))
        _ = buffer.add(Self.item(1), due: .milliseconds(500), at: .milliseconds(100))
        _ = buffer.add(Self.item(2), due: nil, at: .milliseconds(100))
        let first = buffer.take()
        #expect(first?.heldSince == nil && first?.heldFor == .zero)
        buffer.release(at: .milliseconds(505))
        let second = buffer.take()
        #expect(second?.heldFor == .milliseconds(405))
    }

    @Test func theLargestAnswersAreDroppedAboveTheByteLimit() {
        var buffer = AnswerBuffer(capacity: 100, byteCapacity: 1_000, horizon: .seconds(1))
        #expect(buffer.add(Self.item(1, byteCount: 600), due: .milliseconds(500), at: .zero) == 0)
        for mark in 2...5 { #expect(buffer.add(Self.item(UInt8(mark), byteCount: 100), due: nil, at: .zero) == 0) }
        // The large one that is held makes room for a small one.
        #expect(buffer.add(Self.item(6, byteCount: 100), due: nil, at: .zero) == 1)
        #expect(buffer.byteCount == 500)
        // One that is itself the largest is lost itself.
        #expect(buffer.add(Self.item(7, byteCount: 700), due: nil, at: .zero) == 1)
        #expect(Self.marks(&buffer) == [2, 3, 4, 5, 6])
        buffer.release(at: .seconds(1))
        #expect(Self.marks(&buffer) == [])
    }

    @Test func ofAnswersOfTheSameSizeTheNewestAreDropped() {
        var buffer = AnswerBuffer(capacity: 100, byteCapacity: 1_000, horizon: .seconds(1))
        for mark in 1...5 { #expect(buffer.add(Self.item(UInt8(mark), byteCount: 200), due: nil, at: .zero) == 0) }
        #expect(buffer.take()?.publications.first?.first?.places == [1])
        #expect(buffer.add(Self.item(6, byteCount: 100), due: nil, at: .zero) == 0)
        #expect(buffer.add(Self.item(7, byteCount: 400), due: nil, at: .zero) == 1)
        #expect(buffer.add(Self.item(8, byteCount: 190), due: nil, at: .zero) == 1)
        #expect(Self.marks(&buffer) == [2, 3, 4, 6, 8])
    }

    @Test func evictedAnswersLeaveNothingBehind() {
        var buffer = AnswerBuffer(capacity: 10, byteCapacity: 1_000, horizon: .seconds(1))
        // Each displaces the one before it.
        for byteCount in (501...999).reversed() { _ = buffer.add(Self.item(0, byteCount: byteCount), due: nil, at: .zero) }
        #expect(buffer.count == 1)
        #expect(buffer.ready.count < 100)
        #expect(Self.marks(&buffer) == [0])
    }

    @Test func anAnswerAboveTheCountLimitIsDropped() {
        var buffer = AnswerBuffer(capacity: 2, byteCapacity: 1_000, horizon: .seconds(1))
        #expect(buffer.add(Self.item(1), due: nil, at: .zero) == 0)
        #expect(buffer.add(Self.item(2), due: .milliseconds(500), at: .zero) == 0)
        #expect(buffer.add(Self.item(3), due: nil, at: .zero) == 1)
        #expect(Self.marks(&buffer) == [1])
        #expect(buffer.add(Self.item(4), due: nil, at: .zero) == 0)
    }
}
