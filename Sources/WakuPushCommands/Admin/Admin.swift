import ArgumentParser

struct Admin: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Looks into a node and its data folder, and steers it: beside a running daemon or without one.",
        discussion: """
            EXAMPLES
              waku-push admin status --data data
              waku-push admin registrations list --data data
              waku-push admin registrations show 0eb7c16f --data data \\
                --identity id.key
              waku-push admin outbox list --data data --json
            """,
        subcommands: [
            Status.self, Registrations.self, Records.self, Outbox.self, Topics.self, Peers.self, Drain.self, LogLevel.self, Backup.self,
            Restore.self,
            Check.self,
            RotateStorageKey.self, TestPush.self,
        ])

    @Option(help: "The node's data folder. It may also stand at the end. [default: data]")
    var data: String?

    struct Registrations: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Who is registered.",
            subcommands: [List.self, Find.self, Show.self, Stats.self, Remove.self, Export.self, Import.self])
    }

    struct Outbox: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Notifications that wait for gorush.", subcommands: [List.self, Retry.self, Drop.self])
    }
}
