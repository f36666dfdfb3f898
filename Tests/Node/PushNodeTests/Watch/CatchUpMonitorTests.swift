import Core
import NodeAPI
import NodeMetrics
import TestSupport
import Testing

@testable import PushNode

/// The alarm and the finding on missed messages.
struct CatchUpMonitorTests {
    private static let time = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private let alarms = Alarms(registry: MetricRegistry([.alarms]), now: { Self.time })

    @Test func theFindingLastsUntilEverythingWasLookedUp() {
        let monitor = CatchUpMonitor(alarms: alarms)
        func finding(age: Duration) -> Finding? { monitor.finding(seenUntil: Self.time - age, at: Self.time) }
        monitor.gapFound()
        #expect(alarms.all.map(\.reason) == ["missed messages are looked up in stores"] && finding(age: .seconds(31)) == nil)
        monitor.failed("no peer has a store")
        let reason = "missed messages can't be looked up: no peer has a store"
        // Another relay missed nothing.
        monitor.check(seenUntil: Self.time - .seconds(29), at: Self.time)
        monitor.check(seenUntil: nil, at: Self.time)
        #expect(alarms.all.map(\.reason) == ["missed messages are looked up in stores"] && finding(age: .seconds(29)) == nil)
        monitor.check(seenUntil: Self.time - .seconds(31), at: Self.time)
        #expect(alarms.all.map(\.reason) == [reason])
        #expect(finding(age: .seconds(31))?.text == reason && finding(age: .seconds(31))?.verdict == .warn)
        monitor.caughtUp()
        #expect(alarms.all.map(\.reason) == ["missed messages were looked up"] && finding(age: .seconds(31)) == nil)
        #expect(alarms.isActive(.gap))
    }

    @Test func aStoreThatIsNotReadToTheEndIsAFindingWhateverIsCaughtUpLater() {
        let monitor = CatchUpMonitor(alarms: alarms)
        monitor.cutShort("the store repeats a page")
        let reason = "missed messages were not all looked up: the store repeats a page"
        for _ in 0..<2 {
            #expect(alarms.isActive(.catchUpIncomplete) && alarms.all.map(\.reason) == [reason])
            #expect(monitor.finding(seenUntil: Self.time, at: Self.time)?.text == reason)
            monitor.caughtUp()
        }
        #expect(monitor.finding(seenUntil: Self.time, at: Self.time + .seconds(600)) == nil)
    }

    @Test func failuresOfATopicAreReportedAgainAfterAnotherCaughtUp() {
        let monitor = CatchUpMonitor(alarms: alarms)
        func check() { monitor.check(seenUntil: Self.time - .seconds(31), at: Self.time) }
        for _ in 0..<2 {
            monitor.failed("no peer has a store")
            check()
        }
        #expect(alarms.all.map(\.count) == [1])
        monitor.caughtUp()
        monitor.failed("no peer has a store")
        check()
        #expect(alarms.all.map(\.reason) == ["missed messages can't be looked up: no peer has a store"])
        #expect(alarms.all.map(\.count) == [2])
        // So are those after a walk that ended too early.
        monitor.cutShort("the store repeats a page")
        monitor.failed("no peer has a store")
        check()
        #expect(Set(alarms.all.map(\.count)) == [1, 3])
    }

    @Test func catchingUpAfterARestartIsNoAlarm() {
        let monitor = CatchUpMonitor(alarms: alarms)
        monitor.caughtUp()
        #expect(alarms.all.isEmpty && monitor.finding(seenUntil: nil, at: Self.time) == nil)
    }
}
