import Core
import Dispatch
@testable import SessionProtocol
import Synchronization
import TestSupport
import Testing

@Suite struct MonitorAlarmTests {
    private let queue = DispatchQueue(label: "alarm")
    private let alarm: Alarm
    private let calls = Calls()

    init() {
        alarm = Alarm(on: queue)
    }

    private final class Calls: Sendable {
        private let all = Mutex<[Int]>([])

        var numbers: [Int] { all.withLock { $0 } }
        func add(_ number: Int) { all.withLock { $0.append(number) } }
    }

    private func set(to time: Instant, _ number: Int) {
        alarm.set(to: time) { [calls] in calls.add(number) }
    }

    /// The timers of a suspended queue wait, as all do while the machine sleeps.
    @Test func aTimeThatHasPassedWithoutACallHoldsUpNoOther() async throws {
        queue.suspend()
        set(to: Instant.now - .seconds(2), 1)
        set(to: Instant.now, 2)
        queue.resume()
        try await eventually { !calls.numbers.isEmpty }
        queue.sync {}
        #expect(calls.numbers == [2])
    }

    @Test func theEarliestTimeCounts() async throws {
        set(to: Instant.now + .seconds(3_600), 1)
        set(to: Instant.now + .seconds(7_200), 2)
        set(to: Instant.now + .milliseconds(1), 3)
        try await eventually { !calls.numbers.isEmpty }
        #expect(calls.numbers == [3])
    }
}
