import CurlClient
import Foundation
import TestSupport
import Testing

/// A running `waku-push serve` on the loopback relay.
struct Daemon: Sendable {
    let process: ChildProcess
    let relayURL: String
    let httpURL: String

    /// - Parameters:
    ///   - arguments: after `serve`, without the addresses to listen on.
    ///   - environment: as it is for the process.
    static func start(
        _ arguments: [String], environment: [String: String] = [:], program: URL? = nil, shell: String? = nil
    ) async throws -> Daemon {
        var environment = environment
        let namesGorush = ["--gorush", "--config"].contains(where: arguments.contains) || environment["WAKU_PUSH_CONFIG"] != nil
        if !namesGorush, environment["WAKU_PUSH_GORUSH"] == nil { environment["WAKU_PUSH_GORUSH"] = try standInGorush.get().url }
        let (relay, http) = (try freePort(), try freePort())
        let isAlone = !arguments.contains("--relay") || arguments.contains("loopback")
        let listen = isAlone && !arguments.contains("--listen") ? ["--listen", "/ip4/127.0.0.1/tcp/0"] : []
        let process = try ChildProcess(
            ["serve", "--loopback-listen", "127.0.0.1:\(relay)", "--http", "127.0.0.1:\(http)"] + listen + arguments,
            program: program, environment: environment, limit: .seconds(300), shell: shell)
        let daemon = Daemon(process: process, relayURL: "http://127.0.0.1:\(relay)", httpURL: "http://127.0.0.1:\(http)")
        try await eventually {
            if !process.isRunning { return true }
            return await daemon.isReady(hasLoopback: isAlone)
        }
        guard process.isRunning else { throw NotReady(log: process.errors) }
        return daemon
    }

    struct NotReady: Error {
        let log: String
    }

    /// For daemons that notify nobody: answers the health check, and no post.
    private static let standInGorush = Result { try RawHTTPServer { _ in .status(404) } }

    private func isReady(hasLoopback: Bool) async -> Bool {
        guard let answer = try? await get("/readyz") else { return false }
        // A configuration file may name a gorush that is not there.
        let obstacles = String(decoding: answer.body, as: UTF8.self).split(separator: "\n")
        guard answer.status == 200 || obstacles.allSatisfy({ $0.contains(": does not answer: ") }) else { return false }
        return hasLoopback ? (try? await Daemon.get(relayURL + "/health").status) == 200 : true
    }

    /// Where other nodes dial it.
    func multiaddr() async throws -> String {
        let text = /libp2p listening address=(\S+)/
        try await eventually { process.errors.contains(text) || !process.isRunning }
        return String(try #require(process.errors.firstMatch(of: text), "\(process.errors)").1)
    }

    func get(_ path: String) async throws -> HTTPResponse {
        try await Daemon.get(httpURL + path)
    }

    /// Ends it as an operator does.
    func stop(_ signal: Int32 = SIGTERM) async -> Ended {
        process.send(signal)
        let status = await process.status
        return Ended(status: status, output: process.output, errors: process.errors)
    }

    private static let client = CurlClient()

    private static func get(_ url: String) async throws -> HTTPResponse {
        try await client.send(HTTPRequest(method: "GET", url: url))
    }
}
