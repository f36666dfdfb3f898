import CurlClient
import Foundation
import TestSupport

/// A running `waku-push serve`.
struct DaemonProcess: Sendable {
    let number: Int
    let process: ChildProcess
    let httpURL: String
    let started = ContinuousClock.now

    private static let client = CurlClient()
    private static let startTimeout = Duration.seconds(120)

    /// Returns once messages arrive and can be stored, regardless of gorush. Also used for a daemon that has been running for long, after an
    /// outage.
    ///
    /// - Throws: ``Failed`` after the time limit.
    func waitUntilReady() async throws -> Duration {
        let deadline = ContinuousClock.now + Self.startTimeout
        while true {
            let response = try? await Self.client.send(HTTPRequest(method: "GET", url: httpURL + "/readyz", timeout: .seconds(5)))
            if let response, Self.isReady(response) { return .now - started }
            guard process.isRunning else { throw Failed("daemon \(number) did not start: \(lastLines)") }
            guard ContinuousClock.now < deadline else { throw Failed("daemon \(number) does not get ready: \(lastLines)") }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private static func isReady(_ response: HTTPResponse) -> Bool {
        if response.status == 200 { return true }
        let obstacles = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
        return response.status == 503 && !obstacles.isEmpty && obstacles.allSatisfy { $0.hasPrefix("gorush: ") }
    }

    /// Sends SIGKILL. Returns the time of the signal once the process has ended.
    func kill() async -> ContinuousClock.Instant {
        let now = ContinuousClock.now
        process.send(SIGKILL)
        _ = await process.status
        return now
    }

    /// Resident memory in bytes; nil when the process has ended.
    var residentByteCount: Int? { statusField("VmRSS").map { $0 * 1024 } }

    /// Resident memory in bytes, open descriptors and threads; nil when the process has ended.
    var resources: (memory: Int, descriptors: Int, threads: Int)? {
        guard let memory = residentByteCount, let threads = statusField("Threads"),
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.processID)/fd").count
        else { return nil }
        return (memory, descriptors, threads)
    }

    private func statusField(_ name: String) -> Int? {
        guard let status = try? String(contentsOfFile: "/proc/\(process.processID)/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
    }

    var lastLines: String {
        process.errors.split(separator: "\n").suffix(20).joined(separator: "\n")
    }
}
