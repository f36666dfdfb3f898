import Foundation
import Testing

/// Machines of many clients against a hostile world, ``ClientSimulation``.
///
/// `WAKU_PUSH_CLIENT_SCHEDULES` sets how many schedules are run, `WAKU_PUSH_CLIENT_SEED` runs one alone.
@Suite struct ClientSimulationTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let scheduleCount = environment["WAKU_PUSH_CLIENT_SCHEDULES"].flatMap(UInt64.init) ?? 300
    private static let only = environment["WAKU_PUSH_CLIENT_SEED"].flatMap(UInt64.init)

    /// Registrations that can succeed do, messages arrive, tokens stay with whoever may have them, pauses grow, nothing loops.
    @Test func everyScheduleKeepsItsPromises() async {
        let seeds = Self.only.map { $0...$0 } ?? 1...Self.scheduleCount
        let figures = await withTaskGroup(of: (UInt64, [String], (registered: Int, mustArrive: Int, notified: Int)).self) { group in
            for seed in seeds {
                group.addTask {
                    var simulation = ClientSimulation(seed: seed)
                    let findings = simulation.run()
                    return (seed, findings, simulation.figures)
                }
            }
            return await group.reduce(into: (registered: 0, mustArrive: 0, notified: 0)) { sum, result in
                let (seed, findings, figures) = result
                #expect(findings.isEmpty, "WAKU_PUSH_CLIENT_SEED=\(seed): \(findings.prefix(5))")
                sum = (sum.registered + figures.registered, sum.mustArrive + figures.mustArrive, sum.notified + figures.notified)
            }
        }
        // A world in which nothing is possible would keep every promise.
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
