import Foundation
import Testing

@testable import SessionProtocol

/// A network in virtual time, with servers that fail, lag behind and change their swarms, and accounts that subscribe, renew and unsubscribe.
@Suite struct SwarmSimulationTests {
    @Test(arguments: [1] as [UInt64])
    func everyAccountIsMonitoredAtEveryReachableServerForADay(seed: UInt64) {
        var simulation = SwarmSimulation(.init(seed: seed))
        simulation.run()
        #expect(simulation.violations == [])
        // The simulation exercised every kind of event.
        let figures = simulation.figures
        #expect(figures.mapChanges > 20 && figures.moves > 0 && figures.losses > 10 && figures.refusals > 0)
        #expect(figures.checkedPairs > 50_000 && figures.longestGap > .seconds(45 * 60))
    }

    @Test(.enabled(if: SwarmSimulationTests.days != nil, "SESSION_SIMULATION_DAYS: 2,000 servers and 100,000 accounts for so many days"))
    func largeNetworkIsMonitoredForDays() {
        var plan = SwarmSimulation.Plan(seed: 18, servers: 2000, swarms: 200, accounts: 100_000, days: Self.days ?? 1)
        plan.mapInterval = 120 * 60
        plan.checkInterval = 60 * 60
        let began = ContinuousClock.now
        var simulation = SwarmSimulation(plan)
        simulation.run()
        #expect(simulation.violations == [])
        print("\(plan)\n\(simulation.figures)\n\(simulation.monitor.figures)\nin \(ContinuousClock.now - began)")
    }

    private static let days = ProcessInfo.processInfo.environment["SESSION_SIMULATION_DAYS"].flatMap { Int($0) }
}
