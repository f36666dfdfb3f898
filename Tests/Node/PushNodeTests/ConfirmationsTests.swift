import NodeAPI
import RateLimits
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Look-ups of published answers, and repetitions")
struct ConfirmationsTests {
    private static let recipient = PrivateKey.generate().publicKey

    private func answer(_ byteCount: Int = 10) -> Reply {
        .test([UInt8](repeating: 1, count: byteCount), to: Self.recipient)
    }

    private func hash(_ number: Int) -> MessageHash { MessageHash(bytes: withUnsafeBytes(of: number, Array.init)) }

    private func sent(_ publications: [[Int]], at time: Duration = .zero, byteCount: Int = 10) -> Confirmations.Sent {
        Confirmations.Sent(
            answer: answer(byteCount), publications: publications.map { $0.map { Confirmations.Message(hash: hash($0)) } },
            publishedAt: time)
    }

    /// The findings in the store of the only relay.
    private func found(_ hashes: Set<MessageHash>) -> Confirmations.Finding { .found(StoreFindings(found: [0: hashes])) }

    private func batch(_ action: Confirmations.Action) throws -> Confirmations.Batch {
        guard case .lookUp(let batch) = action else { throw NoLookUp() }
        return batch
    }

    private struct NoLookUp: Error {}

    private func isWaiting(_ action: Confirmations.Action, until time: Duration) -> Bool {
        if case .wait(until: time) = action { true } else { false }
    }

    private func isIdle(_ action: Confirmations.Action) -> Bool {
        if case .idle = action { true } else { false }
    }

    @Test("An answer that is found is confirmed and removed")
    func confirmed() throws {
        var confirmations = Confirmations()
        #expect(isIdle(confirmations.next(at: .zero)))
        #expect(confirmations.isIdle)
        let isKept = confirmations.add(sent([[1]]), at: .zero)
        #expect(isKept && !confirmations.isIdle)
        #expect(isWaiting(confirmations.next(at: .milliseconds(999)), until: .seconds(1)))
        let batch = try batch(confirmations.next(at: .seconds(1)))
        #expect(batch.hashes == [hash(1)])
        let outcome = confirmations.finish(batch, found([hash(1)]), at: .seconds(1))
        #expect(outcome.confirmedCount == 1 && outcome.givenUpCount == 0 && outcome.toRepublish.isEmpty)
        #expect(confirmations.count == 0 && confirmations.byteCount == 0)
        #expect(isIdle(confirmations.next(at: .seconds(1))))
    }

    @Test("A missing answer is published again three times, then given up; an earlier publication that is found late counts")
    func repeated() throws {
        var confirmations = Confirmations()
        var publications: [[Int]] = []
        for round in 1...4 {
            publications.append([round])
            _ = confirmations.add(sent(publications), at: .seconds(round))
            let batch = try batch(confirmations.next(at: .seconds(round + 1)))
            #expect(batch.hashes == (1...round).map(hash))
            let outcome = confirmations.finish(batch, found([]), at: .seconds(round + 1))
            #expect(outcome.toRepublish.map(\.publications.count) == (round < 4 ? [round] : []))
            #expect(outcome.givenUpCount == (round < 4 ? 0 : 1))
        }
        _ = confirmations.add(sent([[1], [2]]), at: .zero)
        let batch = try batch(confirmations.next(at: .seconds(1)))
        #expect(confirmations.finish(batch, found([hash(1)]), at: .seconds(1)).confirmedCount == 1)
    }

    @Test("After 10 s an answer is given up")
    func late() throws {
        var confirmations = Confirmations()
        _ = confirmations.add(sent([[1]], at: .zero), at: .seconds(9))
        let batch = try batch(confirmations.next(at: .seconds(10)))
        let outcome = confirmations.finish(batch, found([]), at: .seconds(10))
        #expect(outcome.toRepublish.isEmpty && outcome.givenUpCount == 1)
    }

    @Test("All messages of an answer must be found")
    func segments() throws {
        var confirmations = Confirmations()
        for found in [[1], [1, 2]] {
            _ = confirmations.add(sent([[1, 2]]), at: .zero)
            let batch = try batch(confirmations.next(at: .seconds(1)))
            let outcome = confirmations.finish(batch, self.found(Set(found.map(hash))), at: .seconds(1))
            #expect(outcome.toRepublish.count == 2 - found.count && outcome.confirmedCount == found.count - 1)
        }
    }

    @Test("A failing store is queried again after a pause, and causes no repetitions")
    func failing() throws {
        var confirmations = Confirmations()
        _ = confirmations.add(sent([[1]]), at: .zero)
        _ = confirmations.add(sent([[2]]), at: .milliseconds(500))
        for second in 1..<10 {
            let batch = try batch(confirmations.next(at: .seconds(second)))
            let outcome = confirmations.finish(batch, .failed, at: .seconds(second))
            #expect(outcome.toRepublish.isEmpty && outcome.givenUpCount == 0)
            #expect(isWaiting(confirmations.next(at: .seconds(second)), until: .seconds(second + 1)))
        }
        let batch = try batch(confirmations.next(at: .seconds(10)))
        #expect(batch.hashes == [hash(1), hash(2)])
        #expect(confirmations.finish(batch, .failed, at: .milliseconds(10_600)).givenUpCount == 2)
        #expect(confirmations.count == 0)
    }

    @Test("Without a store all answers are given up at once")
    func impossible() throws {
        var confirmations = Confirmations()
        _ = confirmations.add(sent([[1]]), at: .zero)
        let batch = try batch(confirmations.next(at: .seconds(1)))
        let outcome = confirmations.finish(batch, .impossible, at: .seconds(1))
        #expect(outcome.givenUpCount == 1 && outcome.toRepublish.isEmpty && confirmations.count == 0)
    }

    @Test("A look-up has up to a hundred messages, and few answers cause few look-ups")
    func batches() throws {
        var confirmations = Confirmations()
        for number in 0..<250 { _ = confirmations.add(sent([[number]]), at: .zero) }
        var counts: [Int] = []
        while case .lookUp(let batch) = confirmations.next(at: .seconds(1)) {
            counts.append(batch.hashes.count)
            _ = confirmations.finish(batch, found(Set(batch.hashes)), at: .seconds(1))
        }
        #expect(counts == [100, 100, 50])
        for milliseconds in [0, 50, 100, 101] { _ = confirmations.add(sent([[milliseconds]]), at: .milliseconds(milliseconds)) }
        let batch = try batch(confirmations.next(at: .seconds(1)))
        #expect(batch.hashes == [0, 50, 100].map(hash))
    }

    @Test("Answers beyond the limits are not confirmed")
    func bounded() throws {
        var confirmations = Confirmations(configuration: .init(countLimit: 2, byteLimit: 100))
        let isTooLarge = !confirmations.add(sent([[1]], byteCount: 101), at: .zero)
        let isKept = confirmations.add(sent([[1]], byteCount: 60), at: .zero)
        let isTooMuch = !confirmations.add(sent([[2]], byteCount: 60), at: .zero)
        let isKept2 = confirmations.add(sent([[2]]), at: .zero)
        let isOneTooMany = !confirmations.add(sent([[3]]), at: .zero)
        #expect(isTooLarge && isKept && isTooMuch && isKept2 && isOneTooMany)
        // Answers that are being looked up count.
        let batch = try batch(confirmations.next(at: .seconds(1)))
        let isStillTooMany = !confirmations.add(sent([[3]]), at: .seconds(1))
        #expect(isStillTooMany)
        _ = confirmations.finish(batch, found([]), at: .seconds(1))
        let isKept3 = confirmations.add(sent([[3]]), at: .seconds(1))
        #expect(isKept3 && confirmations.byteCount == 10)
        let hasTooManyMessages = !confirmations.add(sent([Array(0...100)]), at: .zero)
        #expect(hasTooManyMessages)
    }

    /// An answer may be a mebibyte: one that is no longer counted must not stay in memory.
    @Test("An answer is released after its look-up, while others wait")
    func released() throws {
        final class Payload: Sendable {}
        var confirmations = Confirmations()
        weak var first: Payload?
        do {
            let (payload, small) = (Payload(), answer())
            first = payload
            let large = Reply(
                kind: small.kind, expires: small.expires, pubsubTopic: small.pubsubTopic, times: nil, question: nil,
                charge: .unattributed, byteCount: 1 << 20
            ) { now in withExtendedLifetime(payload) { small.seal(now) } }
            let isKept = confirmations.add(
                Confirmations.Sent(answer: large, publications: [[Confirmations.Message(hash: hash(1))]], publishedAt: .zero), at: .zero)
            #expect(isKept)
        }
        _ = confirmations.add(sent([[2]]), at: .milliseconds(900))
        #expect(first != nil)
        do {
            let batch = try batch(confirmations.next(at: .seconds(1)))
            #expect(confirmations.finish(batch, found([hash(1), hash(2)]), at: .seconds(1)).confirmedCount == batch.hashes.count)
        }
        #expect(confirmations.count == 1 && first == nil)
    }

    @Test("A store that has none of many answers causes no repetitions until it has one")
    func distrusted() throws {
        var confirmations = Confirmations()
        func lookUp(_ count: Int, found: Int) throws -> Confirmations.Outcome {
            for number in 0..<count { _ = confirmations.add(sent([[number]]), at: .zero) }
            let batch = try batch(confirmations.next(at: .seconds(1)))
            return confirmations.finish(batch, self.found(Set((0..<found).map(hash))), at: .seconds(1))
        }
        #expect(try lookUp(99, found: 0).toRepublish.count == 99)
        let outcome = try lookUp(10, found: 0)
        #expect(outcome.toRepublish.count == 1 && outcome.givenUpCount == 9)
        let outcome2 = try lookUp(10, found: 1)
        #expect(outcome2.confirmedCount == 1 && outcome2.toRepublish.count == 9)
    }

    /// Answers, look-ups and findings in random order: each answer has exactly one outcome, and is published at most four times.
    @Test("Under random schedules each answer has exactly one outcome", arguments: 1...(LongTests.areEnabled ? 20 : 6))
    func simulated(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var confirmations = Confirmations(configuration: .init(distrustLimit: 1_000_000, countLimit: 60, byteLimit: 2000))
        var now = Duration.zero
        var published: [Confirmations.Sent] = []
        var (addedCount, endedCount, shedCount, number) = (0, 0, 0, 0)
        func add(_ item: Confirmations.Sent) {
            if confirmations.add(item, at: now) { addedCount += 1 } else { shedCount += 1 }
        }
        var underWay: [Confirmations.Batch] = []
        for step in 0..<2_000 {
            now += .milliseconds(Int.random(in: 0...200, using: &random))
            if step < 1_800 {
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    number += 1
                    add(sent([[number]], at: now, byteCount: Int.random(in: 1...100, using: &random)))
                }
            }
            if case .lookUp(let batch) = confirmations.next(at: now) { underWay.append(batch) }
            guard !underWay.isEmpty, step >= 1_800 || Bool.random(using: &random) else { continue }
            let batch = underWay.removeFirst()
            let finding: Confirmations.Finding
            switch Int.random(in: 0..<10, using: &random) {
            case 0: finding = .impossible
            case 1, 2: finding = .failed
            default: finding = found(Set(batch.hashes.filter { _ in Bool.random(using: &random) }))
            }
            let outcome = confirmations.finish(batch, finding, at: now)
            endedCount += outcome.confirmedCount + outcome.givenUpCount + outcome.toRepublish.count
            for item in outcome.toRepublish {
                #expect(item.publications.count <= 3 && now - item.publishedAt < .seconds(10), "seed \(seed), step \(step)")
                number += 1
                published.append(item)
                add(
                    Confirmations.Sent(
                        answer: item.answer, publications: item.publications + [[Confirmations.Message(hash: hash(number))]],
                        publishedAt: item.publishedAt))
            }
            #expect(confirmations.count <= 60 && confirmations.byteCount <= 2000, "seed \(seed), step \(step)")
        }
        #expect(addedCount == endedCount && confirmations.count == 0 && confirmations.byteCount == 0, "seed \(seed)")
        #expect(shedCount > 0 && published.count > 100, "seed \(seed)")
    }
}
