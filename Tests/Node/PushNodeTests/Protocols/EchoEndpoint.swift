import Delivery
import HTTPService
import NodeAPI
import Hummingbird
import Logging
import NodeMetrics
import Core
import Storage
import Synchronization
import Waku
import WakuCrypto

/// The echo protocol over HTTP: it listens on no topic, and on an endpoint of its own.
final class EchoEndpoint: NodeProtocol, ProtocolService {
    private let echo: EchoProtocol
    private let port: Int
    private let boundPort: Mutex<Int?> = Mutex(nil)

    init(_ echo: EchoProtocol = EchoProtocol(), port: Int) {
        self.echo = echo
        self.port = port
    }

    static let description = EchoProtocol.description
    func makeService(_ node: NodeServices) throws -> any ProtocolService { EchoEndpoint(EchoProtocol(node), port: port) }

    var findings: [Finding] {
        [Finding("echo", boundPort.withLock(\.self) == nil ? .fail : .ok, "listening on port \(port)")]
    }

    var isListening: Bool { boundPort.withLock(\.self) != nil }

    func run() async throws {
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let router = Router()
        router.post("echo") { [echo] request, _ in
            let text = try await request.body.collect(upTo: 1000)
            let received = ReceivedMessage(
                message: WakuMessage(payload: Array(text.readableBytesView), contentTopic: EchoProtocol.topic, timestamp: .now()),
                pubsubTopic: .statusDefault)
            let times = MessageTimes(received: .now, delay: nil)
            let incoming = Incoming(received: received, hash: received.hash, tag: TopicTag(of: "echo"), times: times)
            let command = echo.change(try echo.decode(incoming, keys: [], at: .now()), at: .now())
            guard let node = echo.node else { return Response(status: .serviceUnavailable) }
            let outcome = try await node.store.commit(command)
            node.delivery.enqueue(echo.queued(by: outcome))
            return Response(status: .ok)
        }
        let listener = HTTPListener(.hostname("127.0.0.1", port: port), limits: HTTPLimits(connections: 10), hosts: nil, logger: quiet)
        do {
            try await listener.run(router.buildResponder()) { channel in
                self.boundPort.withLock { $0 = channel.localAddress?.port }
            }
        } catch {
            throw NodeError(message: "can't listen on port \(port)")
        }
    }
}
