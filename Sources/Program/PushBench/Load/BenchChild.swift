import Foundation

/// A second process of a benchmark. It is killed when this object is freed.
final class BenchChild: Sendable {
    private let process = Process()
    private let output: String?

    /// Starts this program.
    ///
    /// - Parameter output: the file for its output; nil to drop it.
    init(_ arguments: [String], output: String? = nil) throws {
        let executable = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        self.output = output
        if let output { _ = FileManager.default.createFile(atPath: output, contents: nil) }
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output.flatMap { FileHandle(forWritingAtPath: $0) } ?? FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        do {
            try process.run()
        } catch {
            throw BenchError(code: .unavailable, message: "\(executable) can't be started")
        }
    }

    deinit { end() }

    func end() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    var id: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }

    /// Asks it to end.
    func terminate() {
        if process.isRunning { process.terminate() }
    }

    /// Waits for the first complete line that `pick` accepts.
    func line<R>(_ pick: (String) -> R?) async throws -> R {
        var found: R?
        let name = process.executableURL?.lastPathComponent ?? "a process"
        try await waitUntil(.seconds(60), else: "\(name) did not respond") {
            let text = String(decoding: output.flatMap { FileManager.default.contents(atPath: $0) } ?? Data(), as: UTF8.self)
            for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
                if let value = pick(String(line)) { found = value }
            }
            return found != nil
        }
        guard let found else { throw CancellationError() }
        return found
    }
}
