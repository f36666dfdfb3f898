import Foundation
import TestSupport
import Testing

/// Two hundred routers in simulated time, one hundred in the short form. `WAKU_PUSH_SIMULATION_SEEDS=1-50` and `WAKU_PUSH_GOSSIP_MESSAGES=500` make
/// it long, `WAKU_PUSH_GOSSIP_FIGURES=1` prints the results; a failure reports the seed and its figures.
@Suite("Simulation of many routers on lossy links", .timeLimit(.minutes(60)))
struct GossipSimulationTests {
    private static let environment = ProcessInfo.processInfo.environment

    private static var seeds: ClosedRange<UInt64> {
        let bounds = (environment["WAKU_PUSH_SIMULATION_SEEDS"] ?? "1-1").split(separator: "-").compactMap { UInt64($0) }
        return (bounds.first ?? 1)...max(bounds.first ?? 1, bounds.last ?? 1)
    }

    private static func settings() -> GossipSimulation.Settings {
        var settings = GossipSimulation.Settings()
        if !LongTests.areEnabled { settings.nodeCount /= 2 }
        settings.messageCount = environment["WAKU_PUSH_GOSSIP_MESSAGES"].flatMap { Int($0) } ?? settings.messageCount
        return settings
    }

    private func run(seed: UInt64, _ settings: GossipSimulation.Settings) -> GossipSimulation.Figures {
        var simulation = GossipSimulation(seed: seed, settings: settings)
        simulation.run()
        if Self.environment["WAKU_PUSH_GOSSIP_FIGURES"] != nil { print("seed \(seed): \(simulation.figures)") }
        return simulation.figures
    }

    @Test("Every message reaches every node with few copies and meshes of the right size", arguments: seeds)
    func honest(seed: UInt64) {
        let figures = run(seed: seed, Self.settings())
        #expect(figures.messageCount == Self.settings().messageCount)
        #expect(figures.arrived == figures.expected, "seed \(seed): \(figures)")
        #expect(figures.duplicatesAMessage < 6, "seed \(seed): \(figures)")
        // Until the next heartbeat, the outbound quota may add two peers to a mesh.
        #expect(figures.degrees.allSatisfy { $0 <= 10 } && figures.starved == 0, "seed \(seed): \(figures)")
        #expect(figures.degrees.count { 4...8 ~= $0 } * 100 >= figures.degrees.count * 95, "seed \(seed): \(figures)")
        #expect(figures.honestGraylisted == 0, "seed \(seed): \(figures)")
    }

    @Test("With a fifth of hostile nodes, honest messages arrive and hostile nodes are disconnected", arguments: seeds)
    func hostile(seed: UInt64) {
        var settings = Self.settings()
        settings.hostileCount = settings.nodeCount / 5
        let figures = run(seed: seed, settings)
        #expect(figures.arrived == figures.expected, "seed \(seed): \(figures)")
        #expect(figures.duplicatesAMessage < 6, "seed \(seed): \(figures)")
        #expect(figures.invalidForwarded == 0 && figures.honestGraylisted == 0, "seed \(seed): \(figures)")
        // A hostile peer that reconnected shortly before the end may not have been detected yet.
        #expect(
            figures.hostileLinks > settings.hostileCount * 12 && figures.hostileLinksLeft * 50 < figures.hostileLinks,
            "seed \(seed): \(figures)")
    }

    @Test("The same seed results in the same run")
    func deterministic() {
        var settings = GossipSimulation.Settings()
        settings.nodeCount = 40
        settings.hostileCount = 8
        settings.seconds = 20
        let (one, two, other) = (run(seed: 7, settings), run(seed: 7, settings), run(seed: 8, settings))
        #expect(one.digest == two.digest && one.description == two.description)
        #expect(one.digest != other.digest)
    }
}
