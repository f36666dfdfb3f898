import NIOCore
import NIOPosix
package import SessionProtocol
import Synchronization

/// A server with oxenmq's framing and CURVE, as storage servers are, for the benchmark, the demo and tests. It accepts any client, on one or many
/// addresses, each with its own key. Uses a single thread.
package final class OxenMQServer: Sendable {
    /// A connection of a client.
    package struct Peer: Hashable, Sendable {
        /// The index of the listener.
        package let listener: Int
        let connection: Int
    }

    /// An address of 127.0.0.1.
    package struct Listener: Hashable, Sendable {
        /// The X25519 key, 32 bytes.
        package let publicKey: [UInt8]
        package let port: UInt16
    }

    /// The server cannot listen.
    package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Called with a message's parts; returns the messages to send to the peer.
    package typealias Handler = @Sendable (Peer, [[UInt8]]) -> [[[UInt8]]]

    private struct Mailbox {
        var messages: [(peer: Peer, parts: [[UInt8]])] = []
        var isClosed = false
    }

    private let group: MultiThreadedEventLoopGroup
    private let connections: NIOLoopBoundBox<OxenMQServerLoop>
    private let mailbox = Mutex(Mailbox())
    package let listeners: [Listener]

    /// - Parameters:
    ///   - ports: Ports of 127.0.0.1, one for each listener; 0 for any free port.
    ///   - handler: Called with every message, HI and BYE included, on the server's thread.
    /// - Throws: ``Failure``
    package init(sodium: Sodium, ports: [UInt16] = [0], handler: @escaping Handler) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let connections = NIOLoopBoundBox.makeBoxSendingValue(OxenMQServerLoop(handler), eventLoop: group.any())
        var listeners: [Listener] = []
        do {
            for (index, port) in ports.enumerated() {
                let key = CurveKey(sodium: sodium)
                let channel = try await ServerBootstrap(group: group)
                    .serverChannelOption(.backlog, value: 1000)
                    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                    .childChannelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            let link = connections.value.link(at: index, CurveServer(sodium: sodium, key: key))
                            try channel.pipeline.syncOperations.addHandler(link)
                        }
                    }
                    .bind(host: "127.0.0.1", port: Int(port)).get()
                listeners.append(Listener(publicKey: key.publicKey, port: UInt16(channel.localAddress?.port ?? 0)))
            }
        } catch {
            try? await group.shutdownGracefully()
            let reason = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
            throw Failure(description: "OxenMQ cannot listen: \(reason)")
        }
        (self.group, self.connections, self.listeners) = (group, connections, listeners)
    }

    deinit {
        group.shutdownGracefully { _ in }
    }

    /// Sends a message. Dropped if the peer has disconnected.
    package func send(_ parts: [[UInt8]], to peer: Peer) {
        mailbox.withLock { mailbox in
            guard !mailbox.isClosed else { return }
            mailbox.messages.append((peer, parts))
            // Only the first message wakes the thread, which takes all at once.
            if mailbox.messages.count == 1 { connections.eventLoop.execute { [weak self] in self?.deliver() } }
        }
    }

    private func deliver() {
        let messages = mailbox.withLock { mailbox in
            defer { mailbox.messages = [] }
            return mailbox.messages
        }
        connections.value.send(messages)
    }

    /// Closes all connections and ends the thread.
    package func shutDown() async {
        mailbox.withLock { $0.isClosed = true }
        try? await group.shutdownGracefully()
    }
}

/// The connections of an ``OxenMQServer``. Used on the thread of its event loop.
private final class OxenMQServerLoop {
    let handler: OxenMQServer.Handler
    private var links: [OxenMQServer.Peer: OxenMQServerLink] = [:]
    private var lastNumber = 0

    init(_ handler: @escaping OxenMQServer.Handler) { self.handler = handler }

    func link(at listener: Int, _ curve: CurveServer) -> OxenMQServerLink {
        lastNumber += 1
        let link = OxenMQServerLink(.init(listener: listener, connection: lastNumber), curve, owner: self)
        links[link.peer] = link
        return link
    }

    func remove(_ peer: OxenMQServer.Peer) { links[peer] = nil }

    func send(_ messages: [(peer: OxenMQServer.Peer, parts: [[UInt8]])]) {
        for (peer, parts) in messages { links[peer]?.send(parts) }
        for peer in Set(messages.map(\.peer)) { links[peer]?.flush() }
    }
}

/// A connection of an ``OxenMQServerLoop``: passes bytes between a channel and the state machine. A mistake of the client ends it.
private final class OxenMQServerLink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    let peer: OxenMQServer.Peer
    private let owner: OxenMQServerLoop
    private var connection: ZMTPServerConnection
    private var channel: (any Channel)?

    init(_ peer: OxenMQServer.Peer, _ curve: CurveServer, owner: OxenMQServerLoop) {
        (self.peer, self.owner) = (peer, owner)
        connection = ZMTPServerConnection(curve)
    }

    func channelActive(context: ChannelHandlerContext) {
        channel = context.channel
        flush()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        connection.receive(unwrapInboundIn(data))
        do {
            while let parts = try connection.next() {
                for answer in owner.handler(peer, parts) { try connection.send(answer) }
            }
        } catch {
            context.close(promise: nil)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { flush() }

    func channelInactive(context: ChannelHandlerContext) {
        channel = nil
        owner.remove(peer)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func send(_ parts: [[UInt8]]) { try? connection.send(parts) }

    func flush() {
        if let bytes = connection.takeOutbound() { channel?.writeAndFlush(bytes, promise: nil) }
    }
}

@available(*, unavailable)
extension OxenMQServerLink: Sendable {}
