import Foundation
import Synchronization
import TestSupport

/// A Waku node's REST API with scripted responses: by default it is healthy and has no messages.
struct LyingNode: Sendable {
    /// From a request line such as `GET /store/v3/messages?…` to an answer; nil for that of a healthy node.
    typealias Script = @Sendable (_ call: String) -> RawHTTPServer.Reply?

    let server: RawHTTPServer
    private let state: Shared

    /// State shared by the server's threads and the test.
    private final class Shared: Sendable {
        let script = Mutex<Script>({ _ in nil })
        let pollCount = Mutex(0)
    }

    init(_ script: @escaping Script = { _ in nil }) throws {
        let shared = Shared()
        shared.script.withLock { $0 = script }
        state = shared
        server = try RawHTTPServer { request in
            let call = request.head.split(separator: " ").prefix(2).joined(separator: " ")
            if let reply = shared.script.withLock(\.self)(call) { return reply }
            if call.hasPrefix("GET /health") { return .status(200, body: #"{"nodeHealth":"READY","protocolsHealth":[]}"#) }
            if call.hasPrefix("POST /lightpush") { return .status(404) }
            if call.hasPrefix("GET /store") { return .status(200, body: #"{"statusCode":200,"messages":[]}"#) }
            if call.hasPrefix("GET /relay/v1/messages") {
                let number = shared.pollCount.withLock { count in
                    count += 1
                    return count
                }
                // It forgets the subscription once: the messages of that time are fetched from its store.
                return number == 3 ? .status(404) : .status(200, body: "[]")
            }
            return .status(200, body: "OK")
        }
    }

    var url: String { server.url }

    func count(_ call: String) -> Int { server.requests.count { $0.head.hasPrefix(call) } }

    /// From now on.
    func answers(_ script: @escaping Script) { state.script.withLock { $0 = script } }

    static func page(_ body: String) -> RawHTTPServer.Reply { .status(200, headers: ["Content-Type: application/json"], body: body) }
}

/// Bytes that a process has in memory: `VmRSS` now, `VmHWM` at most so far.
func residentBytes(_ process: Int32, _ field: String) -> Int? {
    let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix(field + ":") }
    return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 * 1024 }
}
