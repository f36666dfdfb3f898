import NIOCore
import NIOHTTP1

/// Refuses heads that proxies may read differently, and makes requests of HTTP/1.0 mean what they mean there, before their version is lost. A `Connection`
/// header that contains `close` becomes exactly that, which Hummingbird compares with.
///
/// - More than one `Host`, none in HTTP/1.1 (RFC 9112 section 3.2), and a `Transfer-Encoding` that is not `chunked` or comes with HTTP/1.0
///   (section 6.1), are errors as those of the decoder are: the answer is 400, nothing more is read, and the connection closes. The decoder takes a
///   body in another coding for the next request.
/// - With HTTP/1.0 the connection closes after the response unless the client asks to keep it (RFC 9112 section 9.3), and the client expects no 100
///   (RFC 9110 section 10.1.1).
final class RequestHeadHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private var isRefused = false

    /// Adds the handler behind the decoder of a server's pipeline.
    static func add(to pipeline: ChannelPipeline.SynchronousOperations) throws {
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        try pipeline.addHandler(RequestHeadHandler(), position: .after(decoder))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        if Self.isAmbiguous(head) {
            isRefused = true
            return context.fireErrorCaught(HTTPParserError.strictModeAssertion)
        }
        // Hummingbird closes by this header, and only if it is exactly that.
        if !head.isKeepAlive { head.headers.replaceOrAdd(name: "connection", value: "close") }
        if head.version == .http1_0 { head.headers.remove(name: "expect") }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    private static func isAmbiguous(_ head: HTTPRequestHead) -> Bool {
        let hostCount = head.headers["host"].count
        return hostCount > 1 || hostCount == 0 && head.version == .http1_1
            || head.headers["transfer-encoding"].contains { head.version == .http1_0 || $0.lowercased() != "chunked" }
    }
}

@available(*, unavailable)
extension RequestHeadHandler: Sendable {}
