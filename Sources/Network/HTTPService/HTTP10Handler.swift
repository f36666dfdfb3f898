import NIOCore
import NIOHTTP1

/// Makes requests of HTTP/1.0 mean what they mean there, before their version is lost: the connection closes after the response unless the client asks
/// to keep it (RFC 9112 section 9.3), and the client expects no 100 (RFC 9110 section 10.1.1).
final class HTTP10Handler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    /// Adds the handler behind the decoder of a server's pipeline.
    static func add(to pipeline: ChannelPipeline.SynchronousOperations) throws {
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        try pipeline.addHandler(HTTP10Handler(), position: .after(decoder))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data), head.version == .http1_0 else { return context.fireChannelRead(data) }
        // Hummingbird closes by this header.
        if !head.isKeepAlive { head.headers.replaceOrAdd(name: "connection", value: "close") }
        head.headers.remove(name: "expect")
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }
}

@available(*, unavailable)
extension HTTP10Handler: Sendable {}
