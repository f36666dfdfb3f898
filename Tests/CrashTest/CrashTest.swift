import ArgumentParser

@main
struct CrashTest: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crash-test",
        abstract: "Breaks a real waku-push serve again and again, and checks that it kept every promise.",
        discussion: """
            All of it happens on 127.0.0.1: a network of one, a stand-in for gorush, many clients, and the daemon under test as a process.
            The exit code is 0 only if nothing was lost.
            """,
        subcommands: [Crash.self, Nodes.self, Soak.self], defaultSubcommand: Crash.self)
}

struct CommonOptions: ParsableArguments {
    @Option(help: "The waku-push to test. Without, the one beside this program.")
    var binary: String?

    @Option(help: "What all choices follow from. Without, another one each time.")
    var seed: UInt64 = .random(in: 1...999_999)
}

struct Failed: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
