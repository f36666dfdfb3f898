import PushNode
import ArgumentParser

extension Admin {
    /// Reads nothing from the database, so it may run every few seconds.
    struct Health: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Checks that the daemon answers, or that it is ready: for the health checks of containers.",
            discussion: """
                Asks over the data folder's socket, so it works whatever --http is. Restart a node that does not answer, not one that \
                is not ready: that recovers by itself.

                EXAMPLES
                  waku-push admin health --data data
                  waku-push admin health --ready --data data

                EXIT CODES
                  0   the daemon answers (with --ready: and is ready)
                  2   --ready: it answers but is not ready
                  69  no daemon answers
                  See waku-push --help for the others.
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        @Flag(help: "Fail unless the node is ready, like /readyz; otherwise like /healthz.")
        var ready = false

        func execute() async throws {
            let health: AdminAPI.Health = try await client().get("/health", timeout: .seconds(5))
            if admin.json {
                try Output.json(health)
            } else {
                Output.line(health.obstacles.isEmpty ? "ready" : "not ready")
                for obstacle in health.obstacles { Output.line(obstacle) }
            }
            if ready, !health.obstacles.isEmpty { throw ExitCode(2) }
        }
    }
}
