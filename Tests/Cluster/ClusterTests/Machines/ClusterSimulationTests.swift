import Foundation
import TestSupport
import Testing

/// Nodes, failing databases, gorush and a message network in virtual time: see `ClusterSimulation`.
///
/// `WAKU_PUSH_CLUSTER_SEEDS=20000` runs so many seeds instead of 75, or 2,000 in the long form, `WAKU_PUSH_CLUSTER_SEED=7` one of them.
@Suite struct ClusterSimulationTests {
    @Test func nothingIsLostDoubledOrUnansweredUnderFaults() async {
        let result = await SimulationRuns.run(Self.seeds) { SimulationPlan(seed: $0) }
        #expect(result.failures == [])
        if Self.only == nil {
            let figures = result.figures
            // All mechanisms were exercised.
            #expect(figures.takeovers > 0 && figures.endedLeases > 0 && figures.handovers > 0 && figures.failovers > 0)
            #expect(figures.takenByOtherRank > 0 && figures.answeredForOthers > 0 && figures.unknownCommits > 0)
            #expect(figures.fencedOutcomes > 0 && figures.repeatedPosts > 0 && figures.checkedTimely > 0 && figures.checkedJunk > 0)
        }
        print("\(Self.seeds.count) seeds: \(result.figures)")
    }

    private static let environment = ProcessInfo.processInfo.environment
    private static let only = environment["WAKU_PUSH_CLUSTER_SEED"].flatMap { UInt64($0) }

    private static var seeds: ClosedRange<UInt64> {
        if let only { return only...only }
        return 1...(environment["WAKU_PUSH_CLUSTER_SEEDS"].flatMap { UInt64($0) } ?? (LongTests.areEnabled ? 2000 : 75))
    }
}

/// Runs many seeds on all cores.
enum SimulationRuns {
    static let plainSeeds = ProcessInfo.processInfo.environment["WAKU_PUSH_CLUSTER_SEEDS"].flatMap { UInt64($0) } ?? 4

    struct Result: Sendable {
        var figures = SimulationFigures()
        /// At most ten, in the order of the seeds.
        var failures: [String] = []
        var kinds: Set<Violation.Kind> = []
        var count = 0
    }

    /// - Parameter sought: once a seed violates an invariant of these kinds, later seeds are skipped.
    static func run(
        _ seeds: ClosedRange<UInt64>, until sought: Set<Violation.Kind> = [], _ plan: @escaping @Sendable (UInt64) -> SimulationPlan
    ) async -> Result {
        await withTaskGroup(of: (UInt64, SimulationFigures, [Violation]).self) { group in
            var next = seeds.lowerBound
            var result = Result()
            func add() {
                let seed = next
                next += 1
                group.addTask {
                    var simulation = ClusterSimulation(plan(seed))
                    simulation.run()
                    return (seed, simulation.figures, simulation.violations)
                }
            }
            while next <= seeds.upperBound, next < seeds.lowerBound + 2 { add() }
            while let (seed, figures, violations) = await group.next() {
                result.figures += figures
                result.count += 1
                result.kinds.formUnion(violations.map(\.kind))
                if !violations.isEmpty, result.failures.count < 10 { result.failures.append("seed \(seed): \(violations)") }
                if next <= seeds.upperBound, result.kinds.isDisjoint(with: sought) { add() }
            }
            return result
        }
    }
}
