@testable import NodeMetrics
import Testing
import Core

@Suite("The log of alarms")
struct AlarmLogTests {
    private let start = Timestamp(rawValue: 1_000_000_000_000)

    @Test("An active alarm that is raised again stays one alarm, with the last reason; after it was cleared, a new one begins")
    func lasting() throws {
        let log = Book()
        #expect(log.raise(.storeFails, "full", at: start))
        #expect(!log.raise(.storeFails, "read-only", at: start + .seconds(9000)))
        #expect(log.alarms.map(\.reason) == ["read-only"])
        #expect(log.alarms.map(\.count) == [2])
        #expect(log.isActive(.storeFails, at: start + .seconds(100_000)))
        log.clear(.storeFails, at: start + .seconds(10_000))
        log.clear(.storeFails, at: start + .seconds(20_000))
        #expect(log.alarms.map(\.ended) == [start + .seconds(10_000)])
        #expect(!log.isActive(.storeFails, at: start + .seconds(10_000)))
        #expect(log.raise(.storeFails, "full", at: start + .seconds(30_000)))
        #expect(log.alarms.map(\.since) == [start + .seconds(30_000), start])
    }

    @Test("Alarms about events end by themselves")
    func happening() {
        let log = Book()
        #expect(log.raise(.gap, "", at: start))
        #expect(!log.raise(.gap, "", at: start + .seconds(599)))
        #expect(log.isActive(.gap, at: start + .seconds(1198)))
        #expect(!log.isActive(.gap, at: start + .seconds(1199)))
        #expect(log.raise(.gap, "", at: start + .seconds(1199)))
        #expect(log.alarms.count == 2)
    }

    @Test("An alarm that was raised while the clock was ahead ends when the clock is right; a small step changes nothing")
    func clockAhead() {
        let log = Book()
        _ = log.raise(.gap, "", at: start + .seconds(86_400))
        #expect(log.isActive(.gap, at: start + .seconds(86_399)))
        #expect(!log.isActive(.gap, at: start))
        #expect(log.raise(.gap, "", at: start))
        #expect(log.isActive(.gap, at: start))
    }

    @Test("An active alarm gets another reason, which does not extend it; one that has ended keeps its own")
    func explained() {
        let log = Book()
        _ = log.raise(.gap, "failing", at: start)
        log.explain(.gap, "mended", at: start + .seconds(599))
        log.explain(.gap, "too late", at: start + .seconds(600))
        #expect(log.alarms.map(\.reason) == ["mended"] && log.alarms.map(\.count) == [1])
        #expect(!log.isActive(.gap, at: start + .seconds(600)))
    }

    @Test("Kinds are independent, clearing an inactive alarm changes nothing, and only the latest are kept")
    func kinds() {
        let log = Book()
        log.clear(.silence, at: start)
        #expect(log.alarms.isEmpty)
        for index in 0..<100 {
            let time = start + .seconds(index)
            #expect(log.raise(.silence, "\(index)", at: time))
            if index == 99 { #expect(log.raise(.gorushGivenUp, "", at: time)) }
            log.clear(.silence, at: time)
        }
        #expect(log.alarms.count == AlarmLog.limit)
        #expect(log.alarms.first?.kind == .gorushGivenUp)
        #expect(log.isActive(.gorushGivenUp, at: start + .seconds(99)))
        #expect(log.alarms.last?.reason == "51")
    }

    @Test("An active alarm stays, however many others come and end")
    func longLasting() {
        let log = Book()
        _ = log.raise(.reloadFailed, "unknown key", at: start)
        for index in 1...100 {
            _ = log.raise(.silence, "\(index)", at: start + .seconds(index))
            log.clear(.silence, at: start + .seconds(index))
        }
        #expect(log.isActive(.reloadFailed, at: start + .seconds(100)))
        #expect(log.alarms.count == AlarmLog.limit)
        #expect(log.alarms.suffix(2).map(\.reason) == ["52", "unknown key"])
    }
}

/// A reference, because `#expect` can't call mutating methods.
private final class Book {
    private var log = AlarmLog()
    var alarms: [Alarm] { log.alarms }

    func raise(_ kind: AlarmKind, _ reason: String, at now: Timestamp) -> Bool { log.raise(kind, reason, at: now) }
    func explain(_ kind: AlarmKind, _ reason: String, at now: Timestamp) { log.explain(kind, reason, at: now) }
    func clear(_ kind: AlarmKind, at now: Timestamp) { log.clear(kind, at: now) }
    func isActive(_ kind: AlarmKind, at now: Timestamp) -> Bool { log.isActive(kind, at: now) }
}
