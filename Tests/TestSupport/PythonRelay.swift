import Foundation

/// Other implementations of libp2p, if the environment names them: `LIBP2P_PYTHON`, a Python with libp2p 0.8.1, and `LIBP2P_P2PD`, a
/// go-libp2p daemon. Deploy/test installs both.
package enum OtherLibP2P {
    package static let python = ProcessInfo.processInfo.environment["LIBP2P_PYTHON"]
    package static let daemon = ProcessInfo.processInfo.environment["LIBP2P_P2PD"]
}

/// `Tests/Interop/py_waku_relay.py` as a process: a Waku node made of py-libp2p.
package struct PythonRelay: Sendable {
    package struct Ended: Error, CustomStringConvertible {
        package let description: String
    }

    package let process: ChildProcess
    private let folder: TemporaryFolder
    private var commands: String { folder.path + "/commands" }

    package init(pubsubTopic: String = "/waku/2/rs/16/32") throws {
        guard let python = OtherLibP2P.python else { throw Ended(description: "LIBP2P_PYTHON names no Python") }
        folder = try TemporaryFolder()
        try Data().write(to: URL(fileURLWithPath: folder.path + "/commands"))
        let script = Repository.file("Tests/Interop/py_waku_relay.py").path
        process = try ChildProcess(
            [script, pubsubTopic, folder.path + "/commands"], program: URL(fileURLWithPath: python), limit: .seconds(300))
    }

    package func tell(_ command: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: commands))
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: Data((command + "\n").utf8))
    }

    /// The lines after this word so far.
    package func said(_ word: String) -> [String] {
        process.lines.filter { $0.hasPrefix(word + " ") }.map { String($0.dropFirst(word.count + 1)) }
    }

    /// Waits for the first line after this word.
    @discardableResult
    package func says(_ word: String, where isWanted: (String) -> Bool = { _ in true }) async throws -> String {
        for _ in 0..<6000 {
            if let said = said(word).first(where: isWanted) { return said }
            guard process.isRunning else { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw Ended(description: "no \(word): \(process.output)\(process.errors)")
    }
}
