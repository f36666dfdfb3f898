import Core
import NIOCore
import Testing

@testable import HTTPService

@Suite struct InputTurnsTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private let networks = ["192.0.2.0/24", "198.51.100.0/24"].map { AddressRange($0) }
    private var turns = InputTurns<Int>()

    @Test mutating func fiveMillisecondsCanBeSpentAtOnce() {
        var count = 0
        while turns.admits(at: start) {
            turns.charge(InputTurns<Int>.headCost, from: start, to: start)
            count += 1
        }
        #expect(count == 50)
        #expect(turns.admits(at: start + .microseconds(101)))
    }

    @Test mutating func timeWithoutWorkCountsForFiveMilliseconds() {
        turns.charge(400, from: start + .hours(1), to: start + .hours(1))
        #expect(!turns.admits(at: start + .hours(1)))
    }

    @Test mutating func parsingTakesHalfOfTheTimeOnASlowMachine() {
        turns.charge(1, from: start, to: start + .milliseconds(10))
        #expect(!turns.admits(at: start + .milliseconds(15)))
        #expect(turns.admits(at: start + .milliseconds(15) + .nanoseconds(1)))
    }

    @Test mutating func aProcessThatWasSuspendedGoesOnSoon() {
        turns.charge(1, from: start, to: start + .minutes(1))
        #expect(turns.admits(at: start + .minutes(1)))
    }

    @Test mutating func networksTakeTurnsAndSoDoTheirConnections() {
        for id in 0..<3 { turns.append(id, of: networks[0]) }
        turns.append(10, of: networks[1])
        turns.append(0, of: networks[0])
        var order: [Int] = []
        while let next = turns.popFirst(at: start) { order.append(next) }
        #expect(order == [0, 10, 1, 2, 0])
        #expect(turns.nextTurn(after: start) == nil)
    }

    @Test mutating func nobodyOvertakesAWaitingConnection() {
        turns.append(0, of: nil)
        #expect(!turns.admits(at: start))
        #expect(turns.popFirst(at: start) == 0)
        #expect(turns.admits(at: start))
    }

    /// The loop does other work between two turns, if it has any.
    @Test mutating func theNextTurnComesWhenThePartsArePaid() {
        turns.append(0, of: nil)
        #expect(turns.nextTurn(after: start) == start + .milliseconds(1))
        turns.charge(400 + 160, from: start, to: start)
        #expect(turns.popFirst(at: start + .milliseconds(2)) == nil)
        #expect(turns.nextTurn(after: start) == start + .milliseconds(2) + .nanoseconds(1))
        #expect(turns.popFirst(at: start + .milliseconds(2) + .nanoseconds(1)) == 0)
    }
}
