import Core
import NodeMetrics
import Synchronization
import TestSupport
import Testing
import Waku

@testable import PushNode

@Suite("Failures to look missed messages up")
struct CatchUpFailuresTests {
    private let failures = CatchUpFailures()
    private let start = Timestamp(rawValue: 1_000_000_000_000)

    private func alarm(after time: Duration, seenUntil: Timestamp?) -> String? {
        failures.alarm(at: start + time) { seenUntil }
    }

    @Test("Are an alarm when no relay has the messages in time, once for each")
    func missing() {
        #expect(alarm(after: .zero, seenUntil: nil) == nil)
        failures.add("no store", at: start)
        failures.add("another one", at: start + .seconds(10))
        let before = start - .nanoseconds(1)
        #expect(alarm(after: CatchUpFailures.timeout - .nanoseconds(1), seenUntil: before) == nil)
        #expect(alarm(after: CatchUpFailures.timeout, seenUntil: before) == "no store")
        #expect(alarm(after: CatchUpFailures.timeout * 2, seenUntil: before) == nil)
        failures.add("unknown", at: start)
        #expect(alarm(after: CatchUpFailures.timeout, seenUntil: nil) == "unknown")
    }

    @Test("Are none when a relay has all messages until then")
    func covered() {
        failures.add("no store", at: start)
        #expect(alarm(after: .seconds(6), seenUntil: start) == nil)
        #expect(alarm(after: CatchUpFailures.timeout, seenUntil: nil) == nil)
    }

    @Test("Show in the alarms of the node")
    func raised() async throws {
        let fixture = try NodeFixture()
        let needed = Mutex<RelayNeeds?>(nil)
        let offset = Mutex(Duration.zero)
        try await fixture.withNode(
            now: { .now() + offset.withLock(\.self) },
            makeRelay: { needs, loopback in
                needed.withLock { $0 = needs }
                return loopback
            }
        ) { node async throws in
            let needs = needed.withLock { $0 }
            try #require(needs).report(.catchUpFailed("no store"))
            #expect(!node.node.base.alarms.isActive(.gap))
            offset.withLock { $0 = CatchUpFailures.timeout }
            try await eventually { node.node.base.alarms.isActive(.gap) }
        }
    }
}
