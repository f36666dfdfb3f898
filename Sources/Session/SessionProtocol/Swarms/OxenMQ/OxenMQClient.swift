import Dispatch
import NIOCore
import NIOPosix
import Synchronization

/// Connections to up to thousands of oxenmq servers over ZeroMQ's protocol with CURVE, on one thread; calls from other threads are queued and do not
/// block.
///
///     connect ──▶ [HI] is sent ──▶ .hello ──▶ send, .reply, .refused, .command ──▶ .closed
///
/// After ``Event/closed(_:)`` a connection has no more events, and is not reconnected automatically.
package final class OxenMQClient: Sendable {
    package enum Event: Hashable, Sendable {
        case hello
        case reply(tag: [UInt8], parts: [[UInt8]])
        /// A request, identified by its tag, or a command was refused.
        case refused(OxenMQSession.Refusal, tag: [UInt8]?, byteCount: Int)
        case command(String, parts: [[UInt8]])
        /// An invalid message, or one at the wrong time, was dropped.
        case ignored(byteCount: Int)
        /// The connection failed or ended, the server sent BYE, or the send queue is full.
        case closed(Reason)
    }

    /// The handler's answer to an event.
    package enum Flow: Hashable, Sendable {
        case proceed
        /// Stop reading this connection until ``OxenMQClient/resume(_:)``: the system's buffers fill, then the server has to wait. Messages already
        /// received are still delivered when the connection ends.
        case pause
    }

    package enum Reason: Error, Hashable, CustomStringConvertible {
        case refused
        case handshakeFailed
        case disconnected
        /// The server sent nothing for too long: see ``Configuration/handshakeTimeout`` and ``Configuration/heartbeatTimeout``.
        case silent
        case bye
        case sendQueueFull
        /// The server sent something else than a frame of ZMTP, or of CURVE.
        case invalidFrame
        /// A part is larger than ``Configuration/maximumPartByteCount``.
        case partTooLarge
        /// The server sent an endless message: see ``Configuration/unreceived``.
        case endlessMessage
        /// A message has more than ``OxenMQSession/maximumPartCount`` parts.
        case tooManyParts
        /// An error of the system, or an unusable address.
        case failed(String)

        package var description: String {
            switch self {
            case .refused: "connection refused"
            case .handshakeFailed: "handshake failed"
            case .disconnected: "disconnected"
            case .silent: "the server does not answer"
            case .bye: "the server ended the connection"
            case .sendQueueFull: "the server does not accept requests"
            case .invalidFrame: "the server sent an invalid frame"
            case .partTooLarge: "the server sent a message part that is too large"
            case .endlessMessage: "the server sends a message without an end"
            case .tooManyParts: "the server sent a message of too many parts"
            case .failed(let text): text
            }
        }
    }

    package struct Configuration: Hashable, Sendable {
        package var maximumConnections = 3000
        /// Limit of a message part in bytes. A larger one ends the connection.
        package let maximumPartByteCount: Int
        /// Limit of the bytes that wait for a slow server: more than all unanswered requests, so only one that does not read at all reaches it.
        package var sendQueueByteCount = 80 << 20
        /// From the start of a connection to ``OxenMQClient/Event/hello``.
        package var handshakeTimeout: Duration = .seconds(30)
        /// A server that was silent for so long gets a PING.
        package var heartbeatInterval: Duration = .seconds(15)
        /// The connection to a server that was silent for so long ends.
        package var heartbeatTimeout: Duration = .seconds(60)
        /// Limits of the received bytes of connections that are not delivered, because their message is incomplete or the connection is paused.
        var unreceived: UnreceivedLimits
        /// Interval of the checks of the times above.
        package var checkInterval: Duration = .seconds(1)

        /// For an oxend, whose answers are large.
        package static let oxend = Configuration(maximumPartByteCount: 8 << 20, unreceived: .init(each: 64 << 20))
        /// Answers of storage servers have at most 4 MiB, and reports 77 KB.
        package static let storageServers = Configuration(maximumPartByteCount: 4 << 20, unreceived: .init(each: 16 << 20))
    }

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let eventLoop: any EventLoop
    private let connections: NIOLoopBoundBox<OxenMQLoop>
    /// Nothing may be given to an event loop that has ended.
    private let isClosed = Mutex(false)

    /// - Parameters:
    ///   - sodium: libsodium, loaded by ``Sodium/load()``.
    ///   - handler: Called with every event, in order, on the client's thread: it must not block for long.
    package init(
        sodium: Sodium, configuration: Configuration = .oxend,
        handler: @escaping @Sendable (ConnectionNumber, Event) -> Flow
    ) {
        let eventLoop = group.any()
        self.eventLoop = eventLoop
        connections = .makeBoxSendingValue(
            OxenMQLoop(eventLoop, sodium: sodium, configuration: configuration, handler: handler), eventLoop: eventLoop)
    }

    deinit {
        let group = group
        close()?.whenComplete { _ in group.shutdownGracefully { _ in } }
    }

    private func perform(_ body: @escaping @Sendable (OxenMQLoop) -> Void) {
        isClosed.withLock { isClosed in
            if !isClosed { eventLoop.execute { [connections] in body(connections.value) } }
        }
    }

    /// Starts a connection. Its first event is ``Event/hello`` or ``Event/closed(_:)``.
    package func connect(_ connection: ConnectionNumber, to address: OxenAddress) {
        perform { $0.add(connection, serverKey: address.serverKey) }
        let open = { @Sendable [weak self] in
            let target = Result { () throws(Reason) in try address.resolve() }
            self?.perform { $0.open(connection, target) }
        }
        // The system's search for a name blocks.
        if address.isNamed { DispatchQueue.global().async(execute: open) } else { open() }
    }

    /// Sends a request, after ``Event/hello``. Dropped if the connection has ended.
    package func request(_ connection: ConnectionNumber, _ command: String, tag: [UInt8], body: [UInt8]) {
        perform { $0.send(connection, OxenMQSession.request(command, tag: tag, body: body)) }
    }

    /// Resumes reading a connection after ``Flow/pause``.
    package func resume(_ connection: ConnectionNumber) {
        perform { $0.resume(connection) }
    }

    /// The number of connections that a limit of file descriptors allows: each uses one; the rest of the process needs a few hundred.
    package static func connectionCount(descriptors: Int) -> Int { max(descriptors - 256, 16) }

    /// Sends BYE and closes a connection. No further events follow, except those being handled.
    package func close(_ connection: ConnectionNumber) {
        perform { $0.end(connection) }
    }

    /// Closes all connections and ends the thread.
    package func shutDown() async {
        try? await close()?.get()
        try? await group.shutdownGracefully()
    }

    /// Closes all connections: nil if this was done before.
    private func close() -> EventLoopFuture<Void>? {
        isClosed.withLock { isClosed in
            defer { isClosed = true }
            return isClosed ? nil : eventLoop.flatSubmit { [connections] in connections.value.endAll() }
        }
    }
}

extension OxenMQClient {
    /// Connects to a server, waits for its HELLO, and disconnects.
    ///
    /// - Returns: why there was none; nil if the server answered.
    package static func check(_ address: OxenAddress, sodium: Sodium, within limit: Duration) async -> String? {
        let (events, received) = AsyncStream<Event>.makeStream()
        let client = OxenMQClient(sodium: sodium) { _, event in
            received.yield(event)
            return .proceed
        }
        client.connect(ConnectionNumber(rawValue: 1), to: address)
        let problem = await withTaskGroup(of: String?.self) { group in
            group.addTask {
                for await event in events {
                    if event == .hello { return nil }
                    if case .closed(let reason) = event { return reason.description }
                }
                return "cancelled"
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return "no answer within \(limit.components.seconds) s"
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
        await client.shutDown()
        return problem
    }
}

/// Connections to oxenmq servers: those of an ``OxenMQClient``, or simulated ones. Calls do not block, and events follow on another thread.
package protocol OxenMQConnections: AnyObject, Sendable {
    func connect(_ connection: ConnectionNumber, to address: OxenAddress)
    func request(_ connection: ConnectionNumber, _ command: String, tag: [UInt8], body: [UInt8])
    func resume(_ connection: ConnectionNumber)
    func close(_ connection: ConnectionNumber)
    func shutDown() async
}

extension OxenMQClient: OxenMQConnections {}

/// Makes connections whose events are passed to a handler: see ``OxenMQClient/init(sodium:configuration:handler:)``.
package typealias MakeOxenMQConnections =
    @Sendable (
        _ configuration: OxenMQClient.Configuration,
        _ handler: @escaping @Sendable (ConnectionNumber, OxenMQClient.Event) -> OxenMQClient.Flow
    ) -> any OxenMQConnections
