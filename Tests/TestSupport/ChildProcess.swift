package import Foundation
import Synchronization

/// The program under test as a process. Its output goes to files; it is killed after its time limit, or when this object is released.
package final class ChildProcess: Sendable {
    private static let builtProgram = Result { try findProgram() }
    /// Processes start one at a time, so that none inherits the file descriptors of another.
    private static let spawning = Mutex(())

    /// Starts a process while no other is being started.
    package static func start(_ process: Process) throws {
        try spawning.withLock { _ in try process.run() }
    }

    private let process: Process
    private let folder: TemporaryFolder
    private let exit: Task<Int32, Never>

    /// - Parameters:
    ///   - program: nil for the `waku-push` that was built with the tests: in the same folder or a parent.
    ///   - environment: added to the inherited variables, without options of the program.
    ///   - shell: a shell command that starts it, with the program and its arguments as "$0" and "$@".
    package init(
        _ arguments: [String], program: URL? = nil, environment: [String: String] = [:], limit: Duration = .seconds(60),
        shell: String? = nil
    ) throws {
        folder = try TemporaryFolder()
        let process = Process()
        let program = try program ?? Self.builtProgram.get()
        process.executableURL = shell == nil ? program : URL(fileURLWithPath: "/bin/sh")
        process.arguments = (shell.map { ["-c", $0, program.path] } ?? []) + arguments
        process.environment = Self.inherited.merging(environment) { _, new in new }
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        process.standardInput = FileHandle.nullDevice
        let (output, errors) = (try Self.makeFile(folder.path + "/output"), try Self.makeFile(folder.path + "/errors"))
        (process.standardOutput, process.standardError) = (output, errors)

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
        try Self.start(process)
        // The child has its own copies, and Foundation would keep these open after the process ends, a thousand in total.
        for file in [output, errors] { try file.close() }
        let tooLong = DispatchTime.now() + .milliseconds(Int(limit * TestTimeout.factor / .milliseconds(1)))
        DispatchQueue.global().asyncAfter(deadline: tooLong) { [weak self] in self?.kill() }
    }

    deinit {
        kill()
    }

    /// The exit code after it has ended; below 0 if a signal ended it.
    package var status: Int32 {
        get async { await exit.value }
    }

    package var isRunning: Bool { process.isRunning }
    package var processID: Int32 { process.processIdentifier }
    package var output: String { text("output") }
    package var errors: String { text("errors") }
    /// The complete lines of its output: a program may write a line in pieces.
    package var lines: [Substring] {
        let output = output
        return output[..<(output.lastIndex(of: "\n") ?? output.startIndex)].split(separator: "\n")
    }

    package func send(_ signal: Int32) {
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

    /// `WAKU_PUSH_TEST_PROGRAM`, or the program built beside the tests.
    private static func findProgram() throws -> URL {
        if let path = ProcessInfo.processInfo.environment["WAKU_PUSH_TEST_PROGRAM"] { return URL(fileURLWithPath: path) }
        return try built("waku-push")
    }

    /// A program that was built with the tests: in the same folder or a parent.
    package static func built(_ name: String) throws -> URL {
        var folder = URL(fileURLWithPath: CommandLine.arguments[0]).standardizedFileURL.deletingLastPathComponent()
        while true {
            let candidate = folder.appendingPathComponent(name)
            var isFolder: ObjCBool = false
            if FileManager.default.fileExists(atPath: candidate.path, isDirectory: &isFolder), !isFolder.boolValue { return candidate }
            guard folder.path != "/" else { throw CocoaError(.fileNoSuchFile) }
            folder.deleteLastPathComponent()
        }
    }
}
