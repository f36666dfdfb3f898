import NIOCore

/// Drops the bytes after the last request of a connection, before the decoder. NIO's decoder stops at the end of a request that offers another protocol,
/// and would keep all bytes after it for the handlers of that protocol, without a limit.
final class InputCutoff: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    var isReached = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if !isReached { context.fireChannelRead(data) }
    }
}

@available(*, unavailable)
extension InputCutoff: Sendable {}
