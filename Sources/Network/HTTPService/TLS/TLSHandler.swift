import HummingbirdCore
import Logging
import NIOCore

/// Decrypts what arrives and encrypts what is sent, as the first handler of a connection. Its time-outs are those of ``ConnectionHandler``: a
/// handshake is a part of the first request's head.
final class TLSHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connection: TLSConnection

    init(_ connection: TLSConnection) {
        self.connection = connection
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let progress = unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
            connection.receive(bytes) { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: $0))) }
        }
        writeOutput(context, promise: nil)
        context.flush()
        guard progress == .ended else { return }
        // The handlers behind this one act on the bytes before the end.
        context.fireChannelReadComplete()
        context.close(promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard unwrapOutboundIn(data).withUnsafeReadableBytes({ connection.send($0) }) else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        writeOutput(context, promise: promise)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode != .input {
            connection.sendCloseNotify()
            writeOutput(context, promise: nil)
            context.flush()
        }
        context.close(mode: mode, promise: promise)
    }

    private func writeOutput(_ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        let count = connection.outputByteCount
        guard count > 0 || promise != nil else { return }
        var buffer = context.channel.allocator.buffer(capacity: count)
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { connection.takeOutput($0) }
        context.write(wrapOutboundOut(buffer), promise: promise)
    }
}

@available(*, unavailable)
extension TLSHandler: Sendable {}

/// The channel of a connection with TLS before another protocol.
struct TLSChannel<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base
    let identity: TLSIdentity

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        channel.eventLoop.makeCompletedFuture {
            guard let connection = identity.makeConnection() else { throw ChannelError.ioOnClosedChannel }
            try channel.pipeline.syncOperations.addHandler(TLSHandler(connection))
        }.flatMap { base.setup(channel: channel, logger: logger) }
    }

    func handle(value: Base.Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}
