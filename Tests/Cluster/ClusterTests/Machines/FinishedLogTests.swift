@testable import Cluster
import Core
import Testing

@Suite struct FinishedLogTests {
    private func log(_ change: (inout ClusterConfiguration) -> Void = { _ in }) -> FinishedLog {
        var configuration = ClusterConfiguration()
        change(&configuration)
        return FinishedLog(.number(1), configuration: configuration)
    }

    @Test func firstRowIsWrittenAtOnceAndOthersEvery500Milliseconds() {
        var log = log()
        #expect(log.row(at: .at(0)) == nil)
        log.add(MessageKey(prefix: 1))
        #expect(log.row(at: .at(10)) == FinishedLog.Row(node: .number(1), sequence: 1, prefixes: [1], deleteUpTo: 0))
        log.wrote(isCommitted: true, at: .at(20))
        log.add(MessageKey(prefix: 2))
        log.add(MessageKey(prefix: 3))
        #expect(log.nextWakeUp == .at(510))
        #expect(log.row(at: .at(509)) == nil)
        #expect(log.row(at: .at(510))?.prefixes == [2, 3])
    }

    @Test func rowThatMayNotBeCommittedIsWrittenAgainUnchanged() {
        var log = log()
        log.add(MessageKey(prefix: 1))
        let row = log.row(at: .at(0))
        log.add(MessageKey(prefix: 2))
        #expect(log.row(at: .at(600)) == nil)
        log.wrote(isCommitted: false, at: .at(2000))
        #expect(log.row(at: .at(2000)) == row)
        log.wrote(isCommitted: true, at: .at(2100))
        #expect(log.row(at: .at(2500))?.prefixes == [2])
    }

    @Test func fullRowsAreWrittenSooner() {
        var log = log { $0.finishedRowLimit = 2 }
        for prefix in 1...5 as ClosedRange<UInt64> { log.add(MessageKey(prefix: prefix)) }
        #expect(log.row(at: .at(0))?.prefixes == [1, 2])
        log.wrote(isCommitted: true, at: .at(10))
        #expect(log.nextWakeUp == .at(100))
        #expect(log.row(at: .at(100))?.prefixes == [3, 4])
        log.wrote(isCommitted: true, at: .at(110))
        #expect(log.row(at: .at(600))?.prefixes == [5])
    }

    @Test func ownRowsAreDeletedAfterAMinute() {
        var log = log()
        for second in 0...61 {
            log.add(MessageKey(prefix: UInt64(second)))
            let row = log.row(at: .at(second * 1000))
            #expect(row?.deleteUpTo == (second <= 60 ? 0 : 1))
            log.wrote(isCommitted: true, at: .at(second * 1000))
        }
    }

    @Test func backlogIsBounded() {
        var log = log { $0.finishedBacklogLimit = 100 }
        for prefix in 0..<1000 as Range<UInt64> { log.add(MessageKey(prefix: prefix)) }
        #expect(log.droppedCount > 0)
        let row = log.row(at: .at(0))
        #expect((row?.prefixes.count ?? 0) <= 100 && row?.prefixes.last == 999)
    }
}
