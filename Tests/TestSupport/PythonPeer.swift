import Foundation

/// Other implementations of libp2p, if the environment names them: `LIBP2P_PYTHON`, a Python with libp2p 0.8.1, and `LIBP2P_P2PD`, a
/// go-libp2p daemon. Deploy/test installs both.
package enum OtherLibP2P {
    package static let python = ProcessInfo.processInfo.environment["LIBP2P_PYTHON"]
    package static let daemon = ProcessInfo.processInfo.environment["LIBP2P_P2PD"]
}

/// A script of `Tests/Interop` as a process, run by the Python named by `LIBP2P_PYTHON`. It reads commands from a file, whose path is its first
/// argument, and prints a line for each event.
package struct PythonPeer: Sendable {
    package let process: ChildProcess
    private let folder: TemporaryFolder

    /// - Parameters:
    ///   - script: The script's name.
    ///   - arguments: Arguments after the path of the command file.
    package init(_ script: String, _ arguments: [String] = []) throws {
        guard let python = OtherLibP2P.python else { throw TestFailure("LIBP2P_PYTHON names no Python") }
        folder = try TemporaryFolder()
        let commands = folder.path + "/commands"
        try Data().write(to: URL(fileURLWithPath: commands))
        let path = Repository.file("Tests/Interop/\(script)").path
        process = try ChildProcess([path, commands] + arguments, program: URL(fileURLWithPath: python), limit: .seconds(300))
    }

    package func tell(_ command: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: folder.path + "/commands"))
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: Data((command + "\n").utf8))
    }

    /// The words of all lines that begin with `word`, without `word` itself.
    package func said(_ word: String) -> [[String]] {
        process.lines.filter { $0 == word || $0.hasPrefix(word + " ") }
            .map { $0.split(separator: " ").dropFirst().map(String.init) }
    }

    /// Waits for the first line that begins with `word`.
    @discardableResult
    package func says(_ word: String, where isWanted: ([String]) -> Bool = { _ in true }) async throws -> [String] {
        try await eventually { said(word).contains(where: isWanted) || !process.isRunning }
        guard let line = said(word).first(where: isWanted) else {
            throw TestFailure("no \(word): \(process.output)\(process.errors)")
        }
        return line
    }
}
