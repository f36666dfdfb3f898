import ArgumentParser

struct Admin: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Inspects and controls a node and its data folder, with or without a running daemon.",
        discussion: """
            EXAMPLES
              waku-push admin status --data data
              waku-push admin registrations list --data data
              waku-push admin registrations show 0eb7c16f --data data \\
                --identity id.key
              waku-push admin outbox list --data data --json
            """,
        subcommands: [
            Status.self, Health.self, Registrations.self, Records.self, Subscriptions.self, Outbox.self, Trace.self, Topics.self,
            Peers.self, Limits.self, Nodes.self,
            Drain.self, LogLevel.self, Backup.self, Restore.self, Import.self, Migrate.self, Check.self, RotateStorageKey.self,
            TestPush.self, Audit.self,
        ])

    @Option(help: "The node's data folder. May be given before or after the subcommand. [default: data]")
    var data: String?

    struct Registrations: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists, shows, removes, exports and imports registrations.",
            subcommands: [List.self, Find.self, Show.self, Stats.self, Remove.self, Export.self, Import.self])
    }

    struct Outbox: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists, retries and drops notifications that wait for gorush.", subcommands: [List.self, Retry.self, Drop.self])
    }
}
