import AdminProtocol
import ArgumentParser
import Logging
import PushNode

extension Admin {
    struct Drain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Has the running node take no more registrations, as before it moves to another machine.",
            discussion: """
                Registrations and unregistrations are answered INTERNAL_ERROR from then on, so that a backup made now holds all that was \
                ever answered success. Queries are answered and notifications posted as before. /readyz says 503. It lasts until --undo, or \
                until the daemon ends.

                EXAMPLE
                  waku-push admin drain --data data --wait
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Flag(help: "Take registrations again.") var undo = false
        @Flag(help: "Return when no notification waits for gorush any more.") var wait = false
        @Option(help: "How long --wait waits.") var timeout = DurationArgument("10m", .seconds(600))

        func run() async throws {
            try await reportingFailures {
                guard !(undo && wait) else { throw CommandFailure(.usage, "--undo and --wait exclude each other: give one of them") }
                let client = try AdminClient(folder: admin.folder(of: command))
                let now: AdminAPI.Drain = try await client.post("/drain", AdminAPI.Drain(isOn: !undo))
                if wait { try await waitUntilEmpty(client) }
                if admin.json { return try Output.json(now) }
                Output.line(now.isOn ? "Registrations are not taken any more." : "Registrations are taken.")
            }
        }

        private func waitUntilEmpty(_ client: AdminClient) async throws {
            let deadline = ContinuousClock.now + timeout.duration
            while true {
                guard let status = try await client.status() else { throw client.noDaemon }
                if status.outbox.waiting == 0 { return }
                guard ContinuousClock.now < deadline else {
                    throw CommandFailure(
                        .unavailable, "\(status.outbox.waiting) notifications wait for gorush still: see waku-push admin status")
                }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    struct LogLevel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Changes what the running node logs, until it ends.",
            discussion: "EXAMPLE\n  waku-push admin log-level debug --data data")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "trace, debug, info, notice, warning, error or critical.") var level: Logger.Level

        func run() async throws {
            try await reportingFailures {
                let client = try AdminClient(folder: admin.folder(of: command))
                let before: AdminAPI.LogLevel = try await client.post("/log-level", AdminAPI.LogLevel(level: level.rawValue))
                if admin.json { return try Output.json(["before": before.level, "now": level.rawValue]) }
                Output.line("\(level.rawValue), and was \(before.level)")
            }
        }
    }
}
