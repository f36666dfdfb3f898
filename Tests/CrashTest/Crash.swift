import NodeAssembly
import ArgumentParser
import Foundation
import LoopbackRelay
import StorePostgreSQL
import TestSupport

struct Crash: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "kill -9 at random moments, also while it starts and stops: whatever was acknowledged must be there afterwards.",
        discussion: """
            Ten phones register devices, change and end registrations, and have each other notified, all the time. Four of them are clients of the \
            library PushClient, with their state in SQLite, which are killed and reopened as well. Three accounts of Session subscribe devices over \
            HTTP, and storage servers report messages for them, if libsodium is installed. A round starts a daemon and ends it. What the dead daemon left on disk is compared with all that it had promised, before another may mend it from the network; what the \
            next one has is compared again, by its database and by what it answers.
            """)

    @Option(help: "How many daemons are to meet their end.") var rounds = 15
    @Flag(help: "The daemons keep what they have in PostgreSQL, which is started for it.") var postgresql = false
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard rounds > 1 else { throw ValidationError("--rounds must be above 1") }
    }

    func run() async throws {
        print("crash test: \(rounds) rounds, seed \(common.seed)")
        fflush(nil)
        let began = ContinuousClock.now
        let run = CrashSetting(seed: common.seed)
        let network = LoopbackNetwork(cacheCapacity: 5000, archiveCount: CrashRun.archiveCount)
        var failure: Failed?
        do {
            let server = postgresql ? try PostgreSQLServer() : nil
            var location = StoreLocation.dataFolder
            if let server { location = .postgreSQL(try PostgreSQLAddress(try await server.makeDatabase())) }
            try await Stage.with(network: network, gorush: run.gorush, binary: common.binary, location: location) {
                [rounds, common] stage in
                try await CrashRun(stage, seed: common.seed, ledger: run.ledger, replies: run.replies).run(rounds: rounds)
            }
            withExtendedLifetime(server) {}
        } catch {
            failure = Failed("\(error)")
        }
        try run.report(failure, began: began, seed: common.seed)
    }
}
