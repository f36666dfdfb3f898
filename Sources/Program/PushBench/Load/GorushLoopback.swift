import WakuPushCommands
import Foundation
import HTTPService
import Hummingbird
import Logging
import NIOCore
import Synchronization

/// A gorush stand-in on 127.0.0.1 that accepts every post after a delay, and delivers nothing.
final class GorushLoopback: Sendable {
    private let latency: Duration
    private let port = Mutex(0)
    /// Called with each body.
    private let received: @Sendable (ByteBuffer) -> Void

    private init(latency: Duration, received: @escaping @Sendable (ByteBuffer) -> Void) {
        self.latency = latency
        self.received = received
    }

    /// Prints the port on one line, then serves until the process is killed.
    static func run(latency: Duration) async throws {
        try await running(latency: latency) { server in
            FileHandle.standardOutput.write(Data("port \(server.port.withLock(\.self))\n".utf8))
            try await Task.sleep(for: .seconds(24 * 3600))
        }
    }

    var url: String { "http://127.0.0.1:\(port.withLock { $0 })" }

    /// Serves while `body` runs.
    static func running<R: Sendable>(
        latency: Duration, received: @escaping @Sendable (ByteBuffer) -> Void = { _ in },
        _ body: @escaping @Sendable (GorushLoopback) async throws -> R
    ) async throws -> R {
        let server = GorushLoopback(latency: latency, received: received)
        let (bound, bind) = AsyncStream.makeStream(of: Int.self)
        return try await firstResult {
            for await port in bound {
                server.port.withLock { $0 = port }
                return try await body(server)
            }
            throw BenchError(code: .unavailable, message: "can't listen on a port of 127.0.0.1")
        } beside: {
            defer { bind.finish() }
            try await server.serve { bind.yield($0) }
        }
    }

    private func serve(_ bound: @escaping @Sendable (Int) -> Void) async throws {
        let router = Router()
        router.post("api/push") { [latency, received] request, _ -> Response in
            let body = try await request.body.collect(upTo: 1 << 22)
            received(body)
            if latency > .zero { try await Task.sleep(for: latency) }
            return Response(
                status: .ok, headers: [.contentType: "application/json"],
                body: .init(byteBuffer: ByteBuffer(string: #"{"success":"ok","logs":[]}"#)))
        }
        let quiet = Logger(label: "gorush") { _ in SwiftLogNoOpLogHandler() }
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in if let port = channel.localAddress?.port { bound(port) } }, logger: quiet)
        try await application.runUntilCancelled(logger: quiet)
    }
}
