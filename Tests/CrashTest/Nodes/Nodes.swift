import NodeAssembly
import ArgumentParser
import Foundation
import LoopbackRelay
import StorePostgreSQL
import TestSupport

struct Nodes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Several nodes on one database, of which one after the other is killed, suspended or cut off.",
        discussion: """
            The phones of the other test, and of version 0.1, use a server that consists of several nodes. In each round a node is killed (kill -9), \
            suspended for some seconds, stopped, or loses its connections to PostgreSQL, or PostgreSQL itself is killed. What was acknowledged \
            must be in the database, and nothing may be posted twice but what a killed or suspended node could not record.
            """)

    @Option(help: "How many nodes.") var nodes = 3
    @Option(help: "How often one of them, or PostgreSQL, is to suffer.") var rounds = 15
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard rounds > 0, (2...8).contains(nodes) else { throw ValidationError("--rounds must be above 0, and --nodes from 2 to 8") }
    }

    func run() async throws {
        print("crash test of \(nodes) nodes: \(rounds) rounds, seed \(common.seed)")
        fflush(nil)
        let began = ContinuousClock.now
        let run = CrashSetting(seed: common.seed)
        let networks = (0..<nodes).map { _ in LoopbackNetwork(cacheCapacity: 5000, archiveCount: CrashRun.archiveCount) }
        var failure: Failed?
        do {
            let server = try PostgreSQLServer()
            let address = try PostgreSQLAddress(try await server.makeDatabase())
            try await Stage.with(
                network: networks[0], gorush: run.gorush, binary: common.binary, location: .postgreSQL(address),
                mayFailToStore: true
            ) { [rounds, common] stage in
                let crash = try await CrashRun(stage, seed: common.seed, ledger: run.ledger, replies: run.replies, includesSession: false)
                let bridge = BridgedNetworks(networks, missedPercentage: 3, seed: common.seed &+ 7)
                try await NodesRun(crash, bridge, server, seed: common.seed).run(rounds: rounds)
            }
            withExtendedLifetime(server) {}
        } catch {
            failure = Failed("\(error)")
        }
        try run.report(failure, began: began, seed: common.seed)
    }
}
