import Core
@testable import SessionProtocol
import TestSupport
import Testing

@Suite struct RequestQueueTests {
    @Test func smallRequestsComeBeforeLargeOnes() {
        var queue = RequestQueue()
        func next(_ count: Int) -> [UInt64] { queue.next(maximumCount: count).map(\.tag.rawValue) }
        queue.append(request(1, entries: 65))
        queue.append(request(2, entries: 64))
        queue.append(request(3, entries: 1))
        #expect(next(65) == [2, 3])
        #expect(next(65) == [1])
        #expect(queue.isEmpty)
    }

    @Test func requestThatIsLargerThanABatchComesAlone() {
        var queue = RequestQueue()
        func next(_ count: Int) -> [UInt64] { queue.next(maximumCount: count).map(\.tag.rawValue) }
        for tag in 1...2 { queue.append(request(UInt64(tag), entries: 1000)) }
        #expect(next(100) == [1])
        #expect(next(2000) == [2])
    }

    @Test func requestsOfAnEndedConnectionAreDropped() {
        var queue = RequestQueue()
        func next(_ count: Int) -> [UInt64] { queue.next(maximumCount: count).map(\.tag.rawValue) }
        queue.append(request(1, connection: 7, entries: 1))
        queue.append(request(2, connection: 8, entries: 1))
        queue.append(request(3, connection: 7, entries: 100))
        queue.removeAll(of: ConnectionNumber(rawValue: 7))
        #expect(next(1000) == [2])
        #expect(queue.isEmpty)
    }

    private func request(_ tag: UInt64, connection: UInt64 = 1, entries: Int) -> RequestQueue.Request {
        RequestQueue.Request(
            connection: ConnectionNumber(rawValue: connection), tag: RequestTag(rawValue: tag),
            ids: (0..<entries).map { SubscriptionID(rawValue: Int64($0)) })
    }
}

@Suite struct MessageQueueTests {
    private let limit = MessageQueue.maximumBatchCount

    @Test func connectionsTakeTurnsAndEachKeepsItsOrder() {
        var queue = MessageQueue()
        func append(_ number: Int, _ from: UInt64) -> Bool { queue.append(message(number), from: connection(from)) }
        for number in 0..<limit + 44 { _ = append(number, 1) }
        for number in 10_000..<10_003 { _ = append(number, 2) }
        let first = queue.next().messages.map(\.message.storedAt)
        #expect(first.count == limit)
        #expect(Array(first.prefix(12)) == [0, 1, 2, 3, 4, 5, 6, 7, 10_000, 10_001, 10_002, 8])
        let second = queue.next().messages.map(\.message.storedAt)
        let rest = limit - 3..<limit + 44
        #expect(second == rest.map(Int64.init))
        #expect(queue.isEmpty && queue.byteCount == 0)
    }

    @Test func connectionWithTooMuchIsPausedUntilHalfOfItIsTaken() {
        // Two batches are slightly more than half.
        let room = 4 * limit - 24
        var queue = MessageQueue(limits: .init(connectionByteCount: room * size, totalByteCount: .max))
        func append(_ number: Int, _ from: UInt64) -> Bool { queue.append(message(number), from: connection(from)) }
        for number in 0..<room { #expect(!append(number, 1)) }
        #expect(append(room, 1))
        // Other connections are not affected.
        #expect(!append(0, 2))
        let early = queue.next()
        #expect(early.resumed == [])
        let batch = queue.next()
        #expect(batch.resumed == [connection(1)] && batch.messages.count == limit)
        #expect(!append(room + 1, 1))
    }

    @Test func allConnectionsTogetherAreLimited() {
        var queue = MessageQueue(limits: .init(connectionByteCount: .max, totalByteCount: 20 * size))
        func append(_ number: Int, _ from: UInt64) -> Bool { queue.append(message(number), from: connection(from)) }
        for number in 0..<20 { #expect(!append(number, UInt64(number))) }
        #expect(append(20, 3))
        #expect(append(20, 4))
        let batch = queue.next()
        #expect(batch.messages.count == 22 && batch.resumed == [connection(3), connection(4)])
        #expect(queue.byteCount == 0)
    }

    @Test func messagesOfAnEndedConnectionAreHandedOver() {
        var queue = MessageQueue(limits: .init(connectionByteCount: 0, totalByteCount: .max))
        func append(_ number: Int, _ from: UInt64) -> Bool { queue.append(message(number), from: connection(from)) }
        #expect(append(1, 1))
        queue.forgetPause(of: connection(1))
        let batch = queue.next()
        #expect(batch.messages.map(\.message.storedAt) == [1] && batch.resumed == [])
    }

    /// A storage server reports messages of an account with 99 devices without end: others wait for at most two of them, and a batch is bounded by
    /// its notifications.
    @Test func connectionsTakeTurnsByTheNotificationsOfTheirMessages() {
        var queue = MessageQueue()
        for number in 0..<1_000 { _ = queue.append(message(number), from: connection(1), deviceCount: 99) }
        for number in 10_000..<10_020 { _ = queue.append(message(number), from: connection(2)) }
        let batch = queue.next().messages.map(\.message.storedAt)
        #expect(batch.count(where: { $0 < 10_000 }) <= MessageQueue.maximumBatchFanOut / 99 + 1)
        #expect(batch.prefix(22).count(where: { $0 >= 10_000 }) == 20)
    }

    @Test func accountsOfAConnectionTakeTurns() {
        var queue = MessageQueue()
        for number in 0..<1_000 { _ = queue.append(message(number), from: connection(1), deviceCount: 99) }
        _ = queue.append(message(10_000, of: 2), from: connection(1))
        #expect(queue.next().messages.prefix(2).contains { $0.message.storedAt == 10_000 })
    }

    private let size = 100 + MessageQueue.overhead

    private func connection(_ number: UInt64) -> ConnectionNumber { ConnectionNumber(rawValue: number) }

    private func message(_ number: Int, of owner: UInt64 = 1) -> ReportedMessage {
        let message = NotifyMessage(
            account: account(owner), hash: String(repeating: "h", count: 32), namespace: 0, storedAt: Int64(number), expiresAt: 0,
            data: [UInt8](repeating: 0, count: 100))
        return (message, 0, [])
    }
}

@Suite struct DropAllowanceTests {
    @Test func burstIsAllowedAndRegainedWithTime() {
        var allowance = DropAllowance(limits: .init(burst: 10, rate: 2), at: .zero)
        func spend(_ byteCount: Int, at now: Instant) -> Duration? { allowance.spend(byteCount: byteCount, at: now) }
        for _ in 0..<10 { #expect(spend(100, at: .zero) == nil) }
        #expect(spend(100, at: .zero) == .milliseconds(1500))
        #expect(spend(100, at: .seconds(2)) == nil)
        for _ in 0..<10 { #expect(spend(100, at: .seconds(1000)) == nil) }
        #expect(spend(100, at: .seconds(1000)) != nil)
    }

    @Test func largeMessagesCostMore() {
        var allowance = DropAllowance(limits: .init(burst: 10, rate: 0), at: .zero)
        func spend(_ byteCount: Int, at now: Instant) -> Duration? { allowance.spend(byteCount: byteCount, at: now) }
        #expect(spend(4096 * 9, at: .zero) == nil)
        #expect(spend(0, at: .zero) == .seconds(2))
    }
}

/// An account at a position of the ring of swarms.
func account(_ position: UInt64) -> AccountID {
    let word = (0..<8).map { UInt8(truncatingIfNeeded: position >> (56 - 8 * UInt64($0))) }
    guard let account = AccountID([3] + [UInt8](repeating: 0, count: 24) + word) else { preconditionFailure("33 bytes") }
    return account
}
