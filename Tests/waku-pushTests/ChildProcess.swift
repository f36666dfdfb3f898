import Foundation
import Synchronization
import TestSupport

/// The program under test, run as a process. What it prints goes to files; it is killed when it runs longer than its limit, or is let go.
final class ChildProcess: Sendable {
    private static let executable = Result { try findExecutable() }
    /// One at a time, so that none inherits what another is just being given.
    private static let spawning = Mutex(())

    private let process: Process
    private let folder: TemporaryFolder
    private let exit: Task<Int32, Never>

    /// - Parameter environment: in addition to what is inherited, of which no option of the program is kept.
    /// - Parameter shell: what starts it instead, with the program and its arguments as "$0" and "$@".
    init(_ arguments: [String], environment: [String: String] = [:], limit: Duration = .seconds(60), shell: String? = nil) throws {
        folder = try TemporaryFolder()
        let process = Process()
        let program = try Self.executable.get()
        process.executableURL = shell == nil ? program : URL(fileURLWithPath: "/bin/sh")
        process.arguments = (shell.map { ["-c", $0, program.path] } ?? []) + arguments
        process.environment = Self.inherited.merging(environment) { _, new in new }
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try Self.makeFile(folder.path + "/output")
        process.standardError = try Self.makeFile(folder.path + "/errors")

        let (statuses, ended) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            ended.yield(process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
            ended.finish()
        }
        exit = Task {
            for await status in statuses { return status }
            return .min
        }
        self.process = process
        try Self.spawning.withLock { _ in try process.run() }
        let tooLong = DispatchTime.now() + .milliseconds(Int(limit / .milliseconds(1)))
        DispatchQueue.global().asyncAfter(deadline: tooLong) { [weak self] in self?.kill() }
    }

    deinit {
        kill()
    }

    /// The exit code once it has ended; below 0 when a signal ended it.
    var status: Int32 {
        get async { await exit.value }
    }

    var id: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }
    var output: String { text("output") }
    var errors: String { text("errors") }

    func send(_ signal: Int32) {
        if process.isRunning { Foundation.kill(process.processIdentifier, signal) }
    }

    private func kill() {
        send(SIGKILL)
    }

    private func text(_ name: String) -> String {
        String(decoding: FileManager.default.contents(atPath: folder.path + "/" + name) ?? Data(), as: UTF8.self)
    }

    private static func makeFile(_ path: String) throws -> FileHandle {
        guard FileManager.default.createFile(atPath: path, contents: nil), let file = FileHandle(forWritingAtPath: path) else {
            throw CocoaError(.fileWriteUnknown)
        }
        return file
    }

    private static var inherited: [String: String] {
        ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("WAKU_PUSH_") && !$0.key.lowercased().hasSuffix("_proxy") }
    }

    /// Beside the tests, or in a folder around them.
    private static func findExecutable() throws -> URL {
        var folder = URL(fileURLWithPath: CommandLine.arguments[0]).standardizedFileURL.deletingLastPathComponent()
        while true {
            let candidate = folder.appendingPathComponent("waku-push")
            var isFolder: ObjCBool = false
            if FileManager.default.fileExists(atPath: candidate.path, isDirectory: &isFolder), !isFolder.boolValue { return candidate }
            guard folder.path != "/" else { throw CocoaError(.fileNoSuchFile) }
            folder.deleteLastPathComponent()
        }
    }
}

/// What a process left.
struct Ended: Sendable {
    let status: Int32
    let output: String
    let errors: String

    /// Standard error, when it is one line as all failures are told; else nil.
    var failure: String? {
        guard errors.hasPrefix("waku-push: "), errors.hasSuffix("\n"), errors.filter(\.isNewline).count == 1 else { return nil }
        return String(errors.dropFirst("waku-push: ".count).dropLast())
    }

    func json<T: Decodable>(_ type: T.Type = T.self) throws -> T {
        try JSONDecoder().decode(type, from: Data(output.utf8))
    }

    /// Of lines that begin with a name, two blanks or more, and a value.
    func field(_ name: String) -> String? {
        for line in output.split(separator: "\n") where line.hasPrefix(name + "  ") {
            return line.dropFirst(name.count).trimmingCharacters(in: .whitespaces)
        }
        return nil
    }

    /// Lines of a table, cell by cell.
    var rows: [[String]] {
        output.split(separator: "\n").map { line in
            line.replacing("  ", with: "\t").split(separator: "\t").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }
}

/// Runs the program to its end.
func run(_ arguments: String..., environment: [String: String] = [:]) async throws -> Ended {
    try await run(arguments, environment: environment)
}

func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> Ended {
    let child = try ChildProcess(arguments, environment: environment)
    let status = await child.status
    return Ended(status: status, output: child.output, errors: child.errors)
}

struct DeadlinePassed: Error {}

/// Returns once `condition` holds.
func wait(until condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while try await !condition() {
        guard ContinuousClock.now < deadline else { throw DeadlinePassed() }
        await Task.yield()
    }
}
