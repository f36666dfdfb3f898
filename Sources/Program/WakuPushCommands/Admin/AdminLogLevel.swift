import ArgumentParser
import Logging
import PushNode

extension Admin {
    struct LogLevel: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Changes the log level of the running daemon, until it stops.",
            discussion: "EXAMPLE\n  waku-push admin log-level debug --data data")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "The new level: trace, debug, info, notice, warning, error or critical.") var level: Logger.Level

        func execute() async throws {
            let client = try client()
            let before: AdminAPI.LogLevel = try await client.post("/log-level", AdminAPI.LogLevel(level: level.rawValue))
            if admin.json { return try Output.json(["before": before.level, "now": level.rawValue]) }
            Output.line("log level \(level.rawValue), before \(before.level)")
        }
    }
}
