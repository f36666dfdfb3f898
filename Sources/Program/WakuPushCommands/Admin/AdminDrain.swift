import PushNode
import ArgumentParser

extension Admin {
    struct Drain: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stops the running node from accepting registrations, for instance before a move to another machine.",
            discussion: """
                While draining, registrations and unregistrations are answered INTERNAL_ERROR, and clients repeat them. Queries are answered \
                and notifications posted as before: for a move, make the backup after the daemon has stopped, since notifications that it \
                accepts after a backup would be lost, or posted again. /readyz returns 503. Draining lasts until --undo, or until the daemon \
                stops.

                EXAMPLE
                  waku-push admin drain --data data --wait
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Flag(help: "Accept registrations again.") var undo = false
        @Flag(help: "Wait until the outbox is empty.") var wait = false
        @Option(duration: "Timeout of --wait.") var timeout = DurationArgument("10m")

        func execute() async throws {
            guard !(undo && wait) else { throw CommandFailure(.usage, "--undo and --wait are mutually exclusive: give one of them") }
            let client = try client()
            let now: AdminAPI.Drain = try await client.post(
                undo ? "/drain/undo" : "/drain", [String](), timeout: AdminClient.workLimit)
            if wait { try await waitUntilEmpty(client) }
            if admin.json { return try Output.json(now) }
            Output.line(now.isOn ? "The node no longer accepts registrations." : "The node accepts registrations.")
        }

        private func waitUntilEmpty(_ client: AdminClient) async throws {
            let deadline = ContinuousClock.now + timeout.duration
            var isReported = false
            while true {
                guard let status = try await client.status() else { throw client.noDaemon }
                let count = status.outbox.waiting
                if count == 0 { return }
                guard ContinuousClock.now < deadline else { throw Self.timedOut(count) }
                if !isReported { CommandFailure.report(Self.notice(count, timeout)) }
                isReported = true
                try await Task.sleep(for: .milliseconds(200))
            }
        }

        /// Before the wait, since an interrupted command prints nothing more.
        static func notice(_ count: Int, _ timeout: DurationArgument) -> String {
            "waiting up to \(timeout) for the outbox to empty, \(count) left; if this is interrupted, \(remedy)"
        }

        static func timedOut(_ count: Int) -> CommandFailure {
            CommandFailure(.unavailable, "\(count) notifications still wait for gorush: see waku-push admin status; \(remedy)")
        }

        private static let remedy = "the node keeps draining until waku-push admin drain --undo"
    }
}
