import ArgumentParser
import NodeAPI

struct Doctor: ReportingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Diagnoses a node and everything that it depends on, with a remedy for each problem.",
        usage: "waku-push doctor <options>",
        discussion: """
            If a daemon runs on --data, doctor gets the configuration over its admin socket, and has the daemon send a message to itself \
            and inspect gorush. Options that are given take precedence over the daemon's. Without a daemon, doctor takes the options of \
            serve, publishes the message itself and looks it up in the Waku node's store. No notification is delivered, and no message \
            is taken from the Waku node's cache.

            --test-push posts a test notification to a Web Push subscription: by the daemon, or with the options of serve if they have \
            --web-push. Apps ignore it, and waku-push client listen prints it.

            EXAMPLES
              waku-push doctor --data /var/lib/waku-push
              waku-push doctor --identity id.key --data /var/lib/waku-push \\
                --relay http://127.0.0.1:8645 --gorush https://gorush.example
              waku-push doctor --data /var/lib/waku-push \\
                --test-push subscription.json

            EXIT CODES
              0   all checks passed
              1   a check warned
              2   a check failed
              See waku-push --help for the others.
            """)

    @OptionGroup(title: "Options of serve")
    var options: Serve

    @Option(help: "File with a Web Push subscription to post a test notification to, the JSON that browsers make; - for standard input.")
    var testPush: String?

    @Flag(help: "Print JSON.")
    var json = false

    func execute() async throws {
        let findings = NodeChecks.doctor(try await DoctorExamination(options: options, testPush: testPush).facts())
        if json { try Output.json(findings) } else { findings.print() }
        switch findings.worst {
        case .ok: break
        case .warn: throw ExitCode(1)
        case .fail: throw ExitCode(2)
        }
    }
}
