import ArgumentParser
import CSimulation
import Core
import Foundation
import SessionProtocol

/// `Tests/simulation` runs this, a process for each seed.
@main
struct NodeSimulation: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "node-simulation",
        abstract: "Runs the whole node in virtual time, on one thread, under a seed.",
        discussion: """
            Exits with 1 when the node broke an invariant, and prints its latest events then. Equal arguments give equal runs, of which the hash is \
            printed.
            """)

    @Option(help: "All choices follow from it.")
    var seed: UInt64 = 1

    @Option(help: "Virtual minutes, before the calm at the end.")
    var minutes = 60

    @Option(help: "A defect to plant in the node's environment or interfaces.")
    var mistake: Mistake?

    @Option(help: "The store: sqlite, or postgresql for a model of it; drawn by default.")
    var engine: World.Engine?

    @Option(help: "What may be out of order: \(World.Trouble.allCases.map(\.rawValue).joined(separator: ", ")), or none.")
    var troubles = World.Trouble.allCases.map(\.rawValue).joined(separator: ",")

    @Flag(help: "Print each event.")
    var verbose = false

    @Flag(help: "Print each step of a task, queue or timer.")
    var trace = false

    @Flag(help: "Print the names of the defects.")
    var listMistakes = false

    static func main() {
        simulation_prepare(CommandLine.unsafeArgv)
        self.main(nil)
    }

    func run() throws {
        if listMistakes { return print(Mistake.allCases.map(\.rawValue).joined(separator: "\n")) }
        let folder = "/dev/shm/waku-push-simulation-\(ProcessInfo.processInfo.processIdentifier + 1_000_000_000)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var options = World.Options(seed: seed, duration: .seconds(minutes * 60))
        options.isPrinting = verbose
        options.mistake = mistake
        options.engine = engine
        options.troubles = troubles.split(separator: ",").compactMap { World.Trouble(rawValue: String($0)) }
        let world = World(options, in: folder, sodium: try Sodium.load())
        world.scheduler.isTracing = trace
        let start = world.scheduler.now
        let isGood = world.run()
        let days = Double(world.scheduler.now - start) / 86_400e9
        let processor = Double(simulation_processor_time()) / 1e9
        let (counts, log) = (world.counts, world.log)
        if !isGood, !verbose { for line in log.latest { print("  \(line)") } }
        print(
            """
            seed \(seed): \(isGood ? "good" : "BROKEN"), hash \(String(log.hash, radix: 16)) of \(log.lineCount) events, \
            \(world.scheduler.stepCount) steps; \(counts.registrations) registrations, \(counts.queries) queries, \
            \(counts.requests) requests, \(counts.answers) answers, \(counts.posts) notifications, \(counts.checks) checks; \
            \(world.crashCount) crashes, \(world.stopCount) stops; \(world.engine); \(String(format: "%.3f days in %.1f s", days, processor))
            """)
        if let violation = world.violation {
            print("  \(violation)")
            throw ExitCode.failure
        }
    }
}

extension Mistake: ExpressibleByArgument {}
extension World.Engine: ExpressibleByArgument {}
