import NodeAPI
import NodeMetrics
import RateLimits
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite struct AnswerBufferTests {
    private static let hasher = PayerHasher(key: .random())

    private static func charge(_ payer: UInt8, _ standing: Standing = .stranger) -> Charge {
        Charge(hasher.payer(.registrant, [payer]), standing)
    }

    /// Its place among the relays, of an earlier publication, tells an answer from others.
    private static func item(_ mark: UInt8, byteCount: Int = 10, by charge: Charge = AnswerBufferTests.charge(0)) -> Publisher.Item {
        Publisher.Item(
            answer: Reply(
                kind: .query, expires: true, pubsubTopic: .statusDefault, times: nil, question: nil, charge: charge, byteCount: byteCount
            ) { _ in [] },
            publications: [[Confirmations.Message(hash: MessageHash(bytes: []), places: [Int(mark)])]])
    }

    private static func marks(_ buffer: inout AnswerBuffer) -> [UInt8] {
        var marks: [UInt8] = []
        while let item = buffer.take() { marks += item.publications.flatMap(\.self).flatMap(\.places).map(UInt8.init) }
        return marks
    }

    @Test func dueAnswersAreTakenNewestFirstAndHeldOnesWhenDue() {
        var buffer = AnswerBuffer(capacity: 10, byteCapacity: 1_000)
        #expect(buffer.add(Self.item(1), due: .milliseconds(500), at: .zero) == 0)
        #expect(buffer.add(Self.item(2), due: nil, at: .zero) == 0)
        #expect(buffer.add(Self.item(3), due: .milliseconds(300), at: .zero) == 0)
        // Known only after it was due: it leaves at once.
        #expect(buffer.add(Self.item(4), due: .milliseconds(100), at: .milliseconds(200)) == 0)
        #expect(Self.marks(&buffer) == [4, 2])
        buffer.release(at: .milliseconds(290))
        #expect(Self.marks(&buffer) == [])
        buffer.release(at: .milliseconds(310))
        #expect(Self.marks(&buffer) == [3])
        #expect(buffer.hasHeld && buffer.count == 1)
        buffer.release(at: .milliseconds(500))
        #expect(Self.marks(&buffer) == [1])
        #expect(!buffer.hasHeld && buffer.isEmpty)
    }

    @Test func theTimeForWhichAnAnswerWasHeldIsRecorded() {
        var buffer = AnswerBuffer(capacity: 10, byteCapacity: 1_000)
        _ = buffer.add(Self.item(1), due: .milliseconds(500), at: .milliseconds(100))
        _ = buffer.add(Self.item(2), due: nil, at: .milliseconds(100))
        let first = buffer.take()
        #expect(first?.heldSince == nil && first?.heldFor == .zero)
        buffer.release(at: .milliseconds(505))
        let second = buffer.take()
        #expect(second?.heldFor == .milliseconds(405))
    }

    @Test func thePayerWithMostLosesItsOldestAnswerAboveTheByteLimit() {
        var buffer = AnswerBuffer(capacity: 100, byteCapacity: 1_000)
        let (large, small) = (Self.charge(1), Self.charge(2))
        #expect(buffer.add(Self.item(1, byteCount: 600, by: large), due: .milliseconds(500), at: .zero) == 0)
        for mark in 2...5 { #expect(buffer.add(Self.item(UInt8(mark), byteCount: 100, by: small), due: nil, at: .zero) == 0) }
        // The large one that is held makes room for a small one.
        #expect(buffer.add(Self.item(6, byteCount: 100, by: small), due: nil, at: .zero) == 1)
        // One whose payer would have most is lost itself.
        #expect(buffer.add(Self.item(7, byteCount: 700, by: large), due: nil, at: .zero) == 1)
        #expect(buffer.add(Self.item(8, byteCount: 500, by: large), due: nil, at: .zero) == 0)
        #expect(buffer.add(Self.item(9, byteCount: 100, by: small), due: nil, at: .zero) == 1)
        let marks = Self.marks(&buffer)
        #expect(Set(marks) == [3, 4, 5, 6, 8, 9])
        buffer.release(at: .seconds(1))
        #expect(Self.marks(&buffer) == [])
        #expect(buffer.isEmpty)
    }

    @Test func theOldestAnswerIsDroppedAboveTheCountLimit() {
        var buffer = AnswerBuffer(capacity: 2, byteCapacity: 1_000)
        #expect(buffer.add(Self.item(1), due: nil, at: .zero) == 0)
        #expect(buffer.add(Self.item(2), due: nil, at: .zero) == 0)
        #expect(buffer.add(Self.item(3), due: .milliseconds(500), at: .zero) == 1)
        #expect(Self.marks(&buffer) == [2])
        #expect(buffer.count == 1)
        #expect(buffer.add(Self.item(4), due: nil, at: .zero) == 0)
    }

    @Test func answersForTheKnownDisplaceThoseForStrangersAndHaveMoreTurns() {
        var buffer = AnswerBuffer(capacity: 8, byteCapacity: 800)
        for mark in UInt8(0)..<8 { #expect(buffer.add(Self.item(mark, by: Self.charge(mark)), due: nil, at: .zero) == 0) }
        for mark in UInt8(100)..<104 { #expect(buffer.add(Self.item(mark, by: Self.charge(mark, .known)), due: nil, at: .zero) == 1) }
        // Neither displaces those below their own share.
        #expect(buffer.add(Self.item(8, by: Self.charge(8)), due: nil, at: .zero) == 1)
        let marks = Self.marks(&buffer)
        #expect(marks.count == 8 && marks.prefix(6).count { $0 >= 100 } == 4)
    }

    @Test func evictedAnswersLeaveNothingBehind() {
        var buffer = AnswerBuffer(capacity: 10, byteCapacity: 1_000)
        // Each displaces the one before it.
        for byteCount in (501...999).reversed() { _ = buffer.add(Self.item(0, byteCount: byteCount), due: nil, at: .zero) }
        #expect(buffer.count == 1)
        #expect(Self.marks(&buffer) == [0])
    }

    @Test func allAnswersCanBeRemoved() {
        var buffer = AnswerBuffer(capacity: 2, byteCapacity: 1_000)
        _ = buffer.add(Self.item(1), due: nil, at: .zero)
        _ = buffer.add(Self.item(2), due: .milliseconds(500), at: .zero)
        buffer.removeAll()
        let taken = buffer.take()
        #expect(buffer.isEmpty && taken == nil)
        #expect(buffer.add(Self.item(3), due: nil, at: .zero) == 0)
        #expect(buffer.add(Self.item(4), due: nil, at: .zero) == 0)
        buffer.release(at: .seconds(1))
        #expect(Self.marks(&buffer) == [4, 3])
    }
}
