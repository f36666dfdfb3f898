import Foundation

/// Connections to up to thousands of oxenmq servers over ZeroMQ with CURVE. One thread owns all sockets; calls from other threads are queued and
/// do not block.
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
        /// Stop reading this connection until ``OxenMQClient/resume(_:)``: libzmq queues ``Configuration/receiveQueue`` parts, then the system's
        /// buffers fill and the server has to wait. Messages already received are still delivered when the connection ends.
        case pause
    }

    package enum Reason: Hashable, Sendable, CustomStringConvertible {
        case refused
        case handshakeFailed
        case disconnected
        case bye
        case sendQueueFull
        /// The server sent an endless message: see ``Configuration/unreceived``.
        case endlessMessage
        /// A message has more than ``OxenMQSession/maximumPartCount`` parts.
        case tooManyParts
        /// An error of libzmq.
        case failed(String)

        package var description: String {
            switch self {
            case .refused: "connection refused"
            case .handshakeFailed: "handshake failed"
            case .disconnected: "disconnected"
            case .bye: "the server ended the connection"
            case .sendQueueFull: "the server does not accept requests"
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
        /// Limit of the messages queued in libzmq for a slow server.
        package let sendQueue = 1000
        /// Limit of the message parts queued in libzmq until they are read.
        package let receiveQueue: Int
        package let handshakeTimeout: Duration = .seconds(30)
        /// Interval of the heartbeats of a connection, and the timeout of an answer.
        package let heartbeatInterval: Duration = .seconds(30)
        package let heartbeatTimeout: Duration = .seconds(60)
        /// Limits of the bytes in libzmq that connections have sent but the loop has not received. libzmq limits the size of parts and the number of
        /// messages, but not the parts of one message: a server could fill the memory with a message that never ends.
        var unreceived: UnreceivedLimits
        /// Interval of the checks of ``unreceived``.
        package var checkInterval: Duration = .seconds(1)

        /// For an oxend, whose answers are large.
        package static let oxend = Configuration(maximumPartByteCount: 8 << 20, receiveQueue: 300, unreceived: .init(each: 64 << 20))
        /// While a storage server is not read, 100 reports of 77 KB wait, and answers of at most 4 MiB.
        package static let storageServers = Configuration(
            maximumPartByteCount: 4 << 20, receiveQueue: 100, unreceived: .init(each: 16 << 20))
    }

    private let mailbox: OxenMQMailbox<OxenMQLoop.Command>
    /// Left when the thread ends.
    private let running = DispatchGroup()

    /// - Parameters:
    ///   - library: libzmq, loaded by ``ZeroMQLibrary/load()``.
    ///   - handler: Called with every event, in order, on the client's thread: it must not block for long.
    package init(
        library: ZeroMQLibrary, configuration: Configuration = .oxend,
        handler: @escaping @Sendable (ConnectionNumber, Event) -> Flow
    ) {
        let mailbox = OxenMQMailbox<OxenMQLoop.Command>()
        self.mailbox = mailbox
        let running = running
        running.enter()
        Thread.detachNewThread {
            OxenMQLoop(library: library, configuration: configuration, mailbox: mailbox, handler: handler).run()
            running.leave()
        }
    }

    deinit {
        mailbox.close()
    }

    /// Starts a connection. Its first event is ``Event/hello`` or ``Event/closed(_:)``.
    package func connect(_ connection: ConnectionNumber, to address: OxenAddress) {
        mailbox.post(.connect(connection.rawValue, address))
    }

    /// Sends a request, after ``Event/hello``. Dropped if the connection has ended.
    package func request(_ connection: ConnectionNumber, _ command: String, tag: [UInt8], body: [UInt8]) {
        mailbox.post(.send(connection.rawValue, OxenMQSession.request(command, tag: tag, body: body)))
    }

    /// Resumes reading a connection after ``Flow/pause``.
    package func resume(_ connection: ConnectionNumber) {
        mailbox.post(.resume(connection.rawValue))
    }

    /// The number of connections that a limit of file descriptors allows: each uses a TCP socket and three descriptors of libzmq; the rest of the
    /// process needs a few hundred.
    package static func connectionCount(descriptors: Int) -> Int { max((descriptors - 256) / 4, 16) }

    /// Sends BYE and closes a connection. No further events follow, except those being handled.
    package func close(_ connection: ConnectionNumber) {
        mailbox.post(.close(connection.rawValue))
    }

    /// Closes all connections and ends the thread.
    package func shutDown() async {
        mailbox.close()
        await running.isLeft()
    }
}

extension OxenMQClient {
    /// Connects to a server, waits for its HELLO, and disconnects.
    ///
    /// - Returns: why there was none; nil if the server answered.
    package static func check(_ address: OxenAddress, library: ZeroMQLibrary, within limit: Duration) async -> String? {
        let (events, received) = AsyncStream<Event>.makeStream()
        let client = OxenMQClient(library: library) { _, event in
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

/// Makes connections whose events are passed to a handler: see ``OxenMQClient/init(library:configuration:handler:)``.
package typealias MakeOxenMQConnections =
    @Sendable (
        _ configuration: OxenMQClient.Configuration,
        _ handler: @escaping @Sendable (ConnectionNumber, OxenMQClient.Event) -> OxenMQClient.Flow
    ) -> any OxenMQConnections
