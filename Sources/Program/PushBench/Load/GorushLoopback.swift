import Foundation
import HTTPService
import Hummingbird
import Logging
import NIOCore

/// A gorush stand-in on 127.0.0.1 that accepts every post after a delay, and delivers nothing.
struct GorushLoopback: Sendable {
    private let port: Int

    /// Prints the port on one line, then serves until the process is killed.
    static func run(latency: Duration) async throws {
        try await running(latency: latency) { server in
            FileHandle.standardOutput.write(Data("port \(server.port)\n".utf8))
            try await Task.sleep(for: .seconds(24 * 3600))
        }
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// Serves while `body` runs.
    ///
    /// - Parameter received: called with each body.
    static func running<R: Sendable>(
        latency: Duration, received: @escaping @Sendable (ByteBuffer) -> Void = { _ in },
        _ body: @escaping @Sendable (GorushLoopback) async throws -> R
    ) async throws -> R {
        try await withServer { bound in
            let router = Router()
            router.post("api/push") { request, _ -> Response in
                let body = try await request.body.collect(upTo: 1 << 22)
                received(body)
                if latency > .zero { try await Task.sleep(for: latency) }
                return Response(
                    status: .ok, headers: [.contentType: "application/json"],
                    body: .init(byteBuffer: ByteBuffer(string: #"{"success":"ok","logs":[]}"#)))
            }
            let application = Application(
                router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
                onServerRunning: { channel in if let port = channel.localAddress?.port { bound(port) } }, logger: .quiet)
            try await application.runUntilCancelled(logger: .quiet)
        } _: {
            try await body(GorushLoopback(port: $0))
        }
    }
}
