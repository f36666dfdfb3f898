import ArgumentParser
import WakuPushCommands

/// The program `waku-push-bench`: the benchmarks, and the demo that needs stand-ins for Session's network. Not installed.
struct WakuPushBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waku-push-bench",
        abstract: "Measures a push notification node on this machine.",
        discussion: """
            Without a subcommand it measures: waku-push-bench registration --seconds 5 is waku-push-bench run registration --seconds 5.
            """,
        version: Version.current,
        subcommands: [Bench.self, SessionDemo.self], defaultSubcommand: Bench.self)
}

/// The program `waku-push-bench` as a function.
package enum BenchProgram {
    /// Runs the command that the arguments name. `serve` is that of `waku-push`: the node that the benchmarks start as a separate process.
    ///
    /// - Returns: the exit code.
    package static func run() async -> Int32 {
        if WakuPushProgram.command == "serve" { return await WakuPushProgram.run() }
        return await WakuPushProgram.run(WakuPushBench.self, name: "waku-push-bench")
    }
}
