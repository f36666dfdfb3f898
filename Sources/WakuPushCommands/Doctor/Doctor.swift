import ArgumentParser
import Doctor
import HealthChecks
import PushNode

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Looks at everything that a node needs, and says what to do about what is wrong.",
        usage: "waku-push doctor <options>",
        discussion: """
            Beside a running daemon it asks that, over the admin socket in --data, what it is configured with, and has it send a message \
            to itself and look at gorush; options that are given go before what the daemon says. Without a daemon it takes the options of \
            serve, and the message is published and looked up in the Waku node's store. Nothing is delivered, and nothing is taken from \
            the Waku node's cache.

            EXAMPLES
              waku-push doctor --data /var/lib/waku-push
              waku-push doctor --identity id.key --data /var/lib/waku-push \\
                --relay http://127.0.0.1:8645 --gorush https://gorush.example

            EXIT CODES
              0   all is well
              1   there is something to look at: warn
              2   something is broken: fail
              Others as waku-push --help has them.
            """)

    @OptionGroup(title: "Options of serve")
    var options: Serve

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        try await reportingFailures {
            let findings = NodeChecks.doctor(try await DoctorExamination(options: options).facts())
            if json { try Output.json(findings) } else { findings.print() }
            switch findings.worst {
            case .ok: break
            case .warn: throw ExitCode(1)
            case .fail: throw ExitCode(2)
            }
        }
    }
}
