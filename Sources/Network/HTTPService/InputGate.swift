import Core
import NIOCore

/// Passes a connection's bytes to the decoder in pieces: when a read is requested behind it, and in the connection's turn (``InputScheduler``). Bytes
/// wait here meanwhile, and the socket is not read.
///
/// NIO reads all that the kernel has when the client ends the connection, whatever was requested, and parsed requests take ten times as much memory
/// as their bytes.
///
/// Bytes after the last request of a connection are dropped. NIO's decoder stops at the end of a request that offers another protocol, and would keep
/// all bytes after it for the handlers of that protocol, without a limit.
final class InputGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The bytes of a turn: up to 20 requests.
    private static let pieceByteCount = 512
    /// The bytes of a turn within a body whose length is known, which are one part.
    private static let bodyPieceByteCount = 4 << 10
    /// Reached only when the client has ended the connection.
    private static let heldLimit = 64 << 10

    private let scheduler: InputScheduler
    private var network: AddressRange?
    private var context: ChannelHandlerContext?
    private var held = ByteBuffer()
    /// A read was requested, and nothing was passed on since.
    private var isRequested = true
    /// The handlers behind this one have a piece.
    private var isPassing = false
    /// ``takeTurn()`` will be called.
    private var isWaiting = false
    /// The client sends no more, and bytes of it are held.
    private var hasEnded = false
    /// The last request of the connection was read, or nothing more is to be.
    private(set) var isCutOff = false
    /// The bytes that follow belong to a body whose length is known.
    private var isInSizedBody = false

    init(_ scheduler: InputScheduler) {
        self.scheduler = scheduler
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        network = context.channel.clientNetwork
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        end()
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isCutOff else { return }
        var bytes = unwrapInboundIn(data)
        if held.readableBytes == 0 { held = bytes } else { held.writeBuffer(&bytes) }
        while held.readableBytes > Self.heldLimit {
            guard isInSizedBody else {
                cutOff()
                return context.close(promise: nil)
            }
            passPiece(context)
        }
    }

    /// The handlers behind this one were told after each piece.
    func channelReadComplete(context: ChannelHandlerContext) { pass(context) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent, held.readableBytes > 0 {
            hasEnded = true
            pass(context)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func read(context: ChannelHandlerContext) {
        isRequested = true
        pass(context)
    }

    // MARK: For the handler behind the decoder

    func readHead(hasLength: Bool) {
        scheduler.count(InputTurns<ObjectIdentifier>.headCost)
        isInSizedBody = hasLength
    }

    func readBody() { scheduler.count(1) }

    func readEnd() {
        scheduler.count(1)
        isInSizedBody = false
    }

    func cutOff() {
        isCutOff = true
        held.clear()
    }

    // MARK: Pieces

    func takeTurn() {
        isWaiting = false
        guard let context else { return }
        if held.readableBytes > 0 { passPiece(context) }
        pass(context)
    }

    private func pass(_ context: ChannelHandlerContext) {
        guard !isPassing, !isWaiting else { return }
        while isRequested, held.readableBytes > 0 {
            guard scheduler.admits(self, of: network) else {
                isWaiting = true
                return
            }
            passPiece(context)
        }
        guard held.readableBytes == 0 else { return }
        if hasEnded {
            hasEnded = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        } else if isRequested {
            context.read()
        }
    }

    /// As a channel with `autoRead` does: the handlers behind this one get the read's end, and may then request another.
    private func passPiece(_ context: ChannelHandlerContext) {
        isRequested = false
        isPassing = true
        defer { isPassing = false }
        let count = min(held.readableBytes, isInSizedBody ? Self.bodyPieceByteCount : Self.pieceByteCount)
        // With storage of its own: a slice would keep all that was held, for as long as the body's reader keeps it.
        let piece = ByteBuffer(bytes: held.readableBytesView.prefix(count))
        held.moveReaderIndex(forwardBy: count)
        held.discardReadBytes()
        scheduler.parse {
            context.fireChannelRead(wrapInboundOut(piece))
            context.fireChannelReadComplete()
        }
        context.pipeline.read()
    }

    private func end() {
        held = ByteBuffer()
        scheduler.closed(self)
    }
}

@available(*, unavailable)
extension InputGate: Sendable {}
