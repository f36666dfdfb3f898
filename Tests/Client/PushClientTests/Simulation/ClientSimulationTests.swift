import Foundation
import TestSupport
import Testing

/// Machines of many clients in a hostile environment, ``ClientSimulation``.
///
/// `WAKU_PUSH_CLIENT_SCHEDULES` sets the number of schedules instead of 60, or 1,000 in the long form; `WAKU_PUSH_CLIENT_SEED` runs a single one.
@Suite struct ClientSimulationTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let scheduleCount = environment["WAKU_PUSH_CLIENT_SCHEDULES"].flatMap(UInt64.init) ?? (LongTests.areEnabled ? 1000 : 60)
    private typealias Figures = ClientSimulation.Figures
    private static let only = environment["WAKU_PUSH_CLIENT_SEED"].flatMap(UInt64.init)

    /// Registrations that can succeed do, messages arrive, tokens stay with the keys that may have them, pauses grow, and there are no endless loops.
    @Test func everyScheduleKeepsTheInvariants() async {
        let seeds = Array(Self.only.map { $0...$0 } ?? 1...Self.scheduleCount)
        // Two at a time, which leaves capacity for tests that wait.
        let figures = await withTaskGroup(of: Figures.self) { group in
            for half in 0..<2 {
                group.addTask {
                    var sum = Figures()
                    for seed in seeds.enumerated().filter({ $0.offset % 2 == half }).map(\.element) {
                        var simulation = ClientSimulation(seed: seed)
                        let findings = simulation.run()
                        #expect(findings.isEmpty, "WAKU_PUSH_CLIENT_SEED=\(seed): \(findings.prefix(5))")
                        sum += simulation.figures
                        await Task.yield()
                    }
                    return sum
                }
            }
            return await group.reduce(into: Figures()) { $0 += $1 }
        }
        // A simulation in which nothing succeeds would violate no invariant.
        let count = Self.only == nil ? Int(Self.scheduleCount) : 1
        #expect(figures.registered > count * 20 && figures.mustArrive > count * 3 && figures.notified > count * 5)
    }

    @Test func sameSeedGivesTheSameRun() {
        let runs = (0..<2).map { _ in
            var simulation = ClientSimulation(seed: 7)
            _ = simulation.run()
            return [simulation.eventCount, simulation.figures.registered, simulation.figures.notified]
        }
        #expect(runs[0] == runs[1])
    }
}
