import Foundation

/// A go-libp2p daemon (`p2pd`) as a process. It listens on a free port of 127.0.0.1, and is controlled over a Unix socket.
package struct GoLibP2PDaemon: Sendable {
    package let process: ChildProcess
    /// Its listen address as a multiaddr, with its peer id.
    package let address: String
    /// The path of its control socket, go-libp2p-daemon, specs/CONTROL.md.
    package var controlPath: String { folder.path + "/control" }
    private let folder: TemporaryFolder

    /// - Parameter arguments: Besides those for its addresses.
    /// - Throws: ``TestFailure`` when it does not start.
    package init(_ arguments: [String] = []) async throws {
        guard let program = OtherLibP2P.daemon else { throw TestFailure("LIBP2P_P2PD names no daemon") }
        folder = try TemporaryFolder()
        process = try ChildProcess(
            ["-listen", "/unix\(folder.path)/control", "-hostAddrs", "/ip4/127.0.0.1/tcp/0", "-quic=false", "-tls=false"] + arguments,
            program: URL(fileURLWithPath: program), limit: .seconds(300))
        let process = process
        try await eventually { Self.address(in: process.lines) != nil || !process.isRunning }
        guard let address = Self.address(in: process.lines) else { throw TestFailure(process.output + process.errors) }
        self.address = address
    }

    /// Parses its output: `Peer ID: ID`, `Peer Addrs:`, and an address per line.
    private static func address(in lines: [Substring]) -> String? {
        let prefix = "Peer ID: "
        guard let id = lines.first(where: { $0.hasPrefix(prefix) })?.dropFirst(prefix.count),
            let address = lines.first(where: { $0.hasPrefix("/ip4/127.0.0.1/tcp/") })
        else { return nil }
        return "\(address)/p2p/\(id)"
    }
}
