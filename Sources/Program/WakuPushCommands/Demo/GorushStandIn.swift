import Foundation
import HTTPService
import Hummingbird
import Logging
import NIOCore
import Synchronization

/// A fake gorush: accepts posts to `/api/push`, keeps their bodies, and delivers nothing.
package final class GorushStandIn: Sendable {
    private let bodies = Mutex<[String]>([])
    private let bound: AsyncStream<Int>
    private let bind: AsyncStream<Int>.Continuation

    package init() {
        (bound, bind) = AsyncStream.makeStream()
    }

    /// The posted bodies, as pretty-printed JSON.
    package var posts: [String] { bodies.withLock { $0 } }

    /// The port. Waits until the server listens.
    ///
    /// - Throws: ``CommandFailure`` if it ended without listening.
    package var port: Int {
        get async throws {
            try await DemoStage.firstPort(bound)
        }
    }

    package func run() async throws {
        defer { bind.finish() }
        let router = Router()
        router.post("api/push") { request, _ -> Response in
            let buffer = try await request.body.collect(upTo: 1 << 20)
            let object = try JSONSerialization.jsonObject(with: Data(buffer.readableBytesView))
            let pretty = try JSONSerialization.data(
                withJSONObject: object, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
            self.bodies.withLock { $0.append(String(decoding: pretty, as: UTF8.self)) }
            let count = ((object as? [String: Any])?["notifications"] as? [Any])?.count ?? 0
            let answer = #"{"success":"ok","counts":\#(count),"logs":[]}"#
            return Response(
                status: .ok, headers: [.contentType: "application/json"], body: .init(byteBuffer: ByteBuffer(string: answer)))
        }
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { [bind] channel in
                if let port = channel.localAddress?.port { bind.yield(port) }
            }, logger: Logger(label: "gorush") { _ in SwiftLogNoOpLogHandler() })
        try await application.runUntilCancelled(logger: Logger(label: "gorush") { _ in SwiftLogNoOpLogHandler() })
    }
}
