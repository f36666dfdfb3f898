import Foundation
import Testing

/// The rules over a real database, driven by seeded random schedules. `WAKU_PUSH_SIMULATION_SEEDS=1-500` and
/// `WAKU_PUSH_SIMULATION_STEPS=20000` make it long; a failure prints its seed.
@Suite("The rules on a failing store", .timeLimit(.minutes(60)))
struct StoreSimulationTests {
    private static let environment = ProcessInfo.processInfo.environment

    private static var seeds: ClosedRange<UInt64> {
        let bounds = (environment["WAKU_PUSH_SIMULATION_SEEDS"] ?? "1-4").split(separator: "-").compactMap { UInt64($0) }
        return (bounds.first ?? 1)...max(bounds.first ?? 1, bounds.last ?? 1)
    }

    private static let steps = environment["WAKU_PUSH_SIMULATION_STEPS"].flatMap { Int($0) } ?? 2_000

    @Test(
        "Versions never decrease, tombstones persist, no acknowledged change is lost, each delivery is accepted once, answers are stable",
        arguments: seeds)
    func invariants(seed: UInt64) async throws {
        var simulation = try StoreSimulation(seed: seed)
        do {
            try await simulation.run(steps: Self.steps)
        } catch {
            Issue.record("seed \(seed), step \(simulation.step): \(error)")
        }
        #expect(simulation.failedCommitCount > 0, "seed \(seed)")
        #expect(simulation.restartCount > 0, "seed \(seed)")
    }
}
