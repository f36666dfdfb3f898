import Foundation
import HTTPService
import Hummingbird
import Logging
package import NIOCore
import Synchronization

/// A fake gorush on 127.0.0.1: accepts posts to `/api/push`, keeps their bodies, and delivers nothing.
package final class GorushStandIn: Sendable {
    private let bodies = Mutex<[String]>([])

    package init() {}

    /// The posted bodies, as pretty-printed JSON.
    package var posts: [String] { bodies.withLock(\.self) }

    /// Serves while `body` runs with its URL.
    package func running<R: Sendable>(_ body: @escaping @Sendable (_ url: String) async throws -> R) async throws -> R {
        try await Self.running(received: keep, body)
    }

    @Sendable private func keep(_ body: ByteBuffer) throws {
        let object = try JSONSerialization.jsonObject(with: Data(body.readableBytesView))
        let pretty = try JSONSerialization.data(withJSONObject: object, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        bodies.withLock { $0.append(String(decoding: pretty, as: UTF8.self)) }
    }

    /// Serves while `body` runs with its URL.
    ///
    /// - Parameters:
    ///   - latency: the time until a post is accepted.
    ///   - received: called with each body.
    package static func running<R: Sendable>(
        latency: Duration = .zero, received: @escaping @Sendable (ByteBuffer) throws -> Void = { _ in },
        _ body: @escaping @Sendable (_ url: String) async throws -> R
    ) async throws -> R {
        try await withServer { bound in
            let router = Router()
            router.post("api/push") { request, _ -> Response in
                try received(try await request.body.collect(upTo: 1 << 22))
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
        } _: {
            try await body("http://127.0.0.1:\($0)")
        }
    }
}
