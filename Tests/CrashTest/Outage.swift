import ArgumentParser
import LoopbackRelay

struct Outage: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "gorush is away for a while, and comes back: all that is not too old by then is delivered once.",
        discussion: """
            Requests go on at the same rate before, during and after. A line a while shows the daemon's memory, what waits in its outbox, what gorush \
            took, and how long the requests of the last while had to wait until gorush had them.
            """)

    @Option(help: "How long gorush is away, in seconds.") var seconds = 600
    @Option(help: "Requests a second.") var rate = 100
    @Option(help: "--max-request-age, in seconds.") var age = 900
    @Option(help: "How long all goes well before and after, in seconds.") var calm = 30
    @Option(help: "How many devices are notified.") var devices = 2000
    @Option(help: "How long gorush takes for a post, at most, in milliseconds.") var latency = 200
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard [seconds, rate, age, calm, latency].allSatisfy({ $0 > 0 }), devices > 1 else {
            throw ValidationError("the numbers are too small")
        }
    }

    func run() async throws {
        print("outage: \(seconds) s at \(rate) requests/s, notifications kept for \(age) s, seed \(common.seed)")
        let log = OutageLog()
        let gorush = GorushStandIn(
            seed: common.seed,
            events: GorushStandIn.Events(
                posted: { taken, _ in log.posted(taken.map(\.delivery)) }, replied: { _, _ in },
                unreadable: { log.fail("gorush can't read \($0)") }))
        gorush.set(.well(latency / 2...latency))
        do {
            try await Stage.with(
                network: LoopbackNetwork(cacheCapacity: 5000, archiveCount: 2000), gorush: gorush, runsGorush: false, binary: common.binary
            ) { [self] stage in
                try await OutageRun(stage, self, log).run()
            }
        } catch {
            print("FAILED: \(error)")
            throw ExitCode.failure
        }
        print("All that was not too old was delivered once.")
    }
}
