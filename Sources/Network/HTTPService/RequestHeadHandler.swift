import NIOCore
import NIOHTTP1

/// Refuses heads that proxies may read differently, makes requests of HTTP/1.0 mean what they mean there, before their version is lost, and decides
/// which request is the last of its connection. The `Connection` header of that becomes exactly `close`, which Hummingbird compares with.
///
/// - More than one `Host`, none in HTTP/1.1 (RFC 9112 section 3.2), and a `Transfer-Encoding` that is not `chunked` or comes with HTTP/1.0
///   (section 6.1), are errors as those of the decoder are: the answer is 400, nothing more is read, and the connection closes. The decoder takes a
///   body in another coding for the next request.
/// - With HTTP/1.0 the connection closes after the response unless the client asks to keep it (RFC 9112 section 9.3), and the client expects no 100
///   (RFC 9110 section 10.1.1).
/// - Offers of another protocol, such as `Upgrade: h2c`, are ignored (RFC 9110 section 7.8) and `CONNECT` is answered as any other method, but the
///   connection closes after the response: the decoder reads no request after them.
///
/// It tells the ``InputGate`` before the decoder what the decoder made of the bytes.
final class RequestHeadHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let gate: InputGate
    private var isLast = false

    private init(_ gate: InputGate) {
        self.gate = gate
    }

    /// Adds the handler behind the decoder of a server's pipeline, and its ``InputGate`` before it.
    static func add(to pipeline: ChannelPipeline.SynchronousOperations, _ scheduler: InputScheduler) throws {
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        let gate = InputGate(scheduler)
        try pipeline.addHandler(gate, position: .before(decoder))
        try pipeline.addHandler(RequestHeadHandler(gate), position: .after(decoder))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The decoder may go on in bytes that it has.
        guard !gate.isCutOff else { return }
        switch unwrapInboundIn(data) {
        case .head(var head):
            if Self.isAmbiguous(head) {
                gate.cutOff()
                return context.fireErrorCaught(HTTPParserError.strictModeAssertion)
            }
            gate.readHead(hasLength: head.headers.contains(name: "content-length"))
            isLast = !head.isKeepAlive || Self.offersOtherProtocol(head)
            if isLast { head.headers.replaceOrAdd(name: "connection", value: "close") }
            if head.version == .http1_0 { head.headers.remove(name: "expect") }
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body:
            gate.readBody()
            context.fireChannelRead(data)
        case .end:
            gate.readEnd()
            if isLast { gate.cutOff() }
            context.fireChannelRead(data)
        }
    }

    /// Also true for an `Upgrade` without `Connection: upgrade`, which the decoder ignores: no request after which it stops may be missed.
    private static func offersOtherProtocol(_ head: HTTPRequestHead) -> Bool {
        head.method == .CONNECT || head.headers.contains(name: "upgrade")
    }

    private static func isAmbiguous(_ head: HTTPRequestHead) -> Bool {
        let hostCount = head.headers["host"].count
        return hostCount > 1 || hostCount == 0 && head.version == .http1_1
            || head.headers["transfer-encoding"].contains { head.version == .http1_0 || $0.lowercased() != "chunked" }
    }
}

@available(*, unavailable)
extension RequestHeadHandler: Sendable {}
