import ArgumentParser
import Foundation
import LoopbackRelay
import NodeAssembly
import StorePostgreSQL
import TestSupport

struct Soak: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "A day of ordinary life: memory, descriptors, threads and latency must not grow, and nothing may be lost.",
        discussion: """
            Phones of all protocols register, notify and unregister all the time; clients are closed and opened again. In turn gorush refuses or is \
            slow, the relay restarts, the daemon is told to reload, or a backup is made. A line each interval shows the daemon, --csv has the same \
            with all figures. The last quarter is compared with the second; both have the same troubles.
            """)

    @Option(help: "How long, in seconds.") var seconds = 5400
    @Option(help: "The time between two lines, in seconds; each has one trouble.") var interval = 60
    @Option(help: "How many phones load the daemon.") var phones = 40
    @Option(help: "A file for the figures.") var csv: String?
    @Flag(help: "The daemon keeps what it has in PostgreSQL, which is started for it.") var postgresql = false
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard interval > 0, seconds >= 8 * interval, phones > 0 else {
            throw ValidationError("--seconds must be at least 8 intervals, and --phones above 0")
        }
    }

    func run() async throws {
        print("soak: \(seconds) s with \(phones) phones, seed \(common.seed)")
        let began = ContinuousClock.now
        let setting = CrashSetting(seed: common.seed)
        let network = LoopbackNetwork(cacheCapacity: 5000, archiveCount: CrashRun.archiveCount)
        var failure: Failed?
        do {
            let server = postgresql ? try PostgreSQLServer() : nil
            var location = StoreLocation.dataFolder
            if let server { location = .postgreSQL(try PostgreSQLAddress(try await server.makeDatabase())) }
            try await Stage.with(network: network, gorush: setting.gorush, binary: common.binary, location: location) { [self] stage in
                let crash = try await CrashRun(
                    stage, seed: common.seed, ledger: setting.ledger, replies: setting.replies, phoneCount: phones)
                try await SoakRun(crash, self).run()
            }
            withExtendedLifetime(server) {}
        } catch {
            failure = Failed("\(error)")
        }
        try setting.report(failure, began: began, seed: common.seed)
    }
}
