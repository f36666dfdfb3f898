import Foundation

/// Connections to oxenmq servers over ZeroMQ with CURVE, up to thousands. One thread owns all sockets; calls from others are queued for it, and none
/// of them blocks.
///
///     connect ──▶ [HI] is sent ──▶ .hello ──▶ send, .reply, .refused, .command ──▶ .closed
///
/// After ``Event/closed(_:)`` nothing more comes of a connection, and it is never made again by itself.
package final class OxenMQClient: Sendable {
    /// Names a connection; the caller chooses numbers that it never uses twice.
    package struct Connection: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt64
        package init(rawValue: UInt64) { self.rawValue = rawValue }
    }

    package enum Event: Hashable, Sendable {
        case hello
        case reply(tag: [UInt8], parts: [[UInt8]])
        case refused(OxenMQSession.Refusal, tag: [UInt8]?)
        case command(String, parts: [[UInt8]])
        /// A message that is none of the protocol was dropped.
        case ignored
        /// It could not be made, it ended, the server said BYE, or what is to be sent is not taken.
        case closed(Reason)
    }

    /// What follows an event.
    package enum Flow: Hashable, Sendable {
        case goOn
        /// Nothing more is read of this connection until ``OxenMQClient/resume(_:)``: libzmq keeps ``Configuration/receiveQueue`` parts, and the system's
        /// buffers fill, so that the server has to wait. What is there when the connection ends still comes.
        case pause
    }

    package enum Reason: Hashable, Sendable, CustomStringConvertible {
        case refused
        case handshakeFailed
        case disconnected
        case bye
        case sendQueueFull
        /// It sent more than was received of it: parts without an end.
        case endlessMessage
        /// libzmq's own.
        case failed(String)

        package var description: String {
            switch self {
            case .refused: "connection refused"
            case .handshakeFailed: "handshake failed"
            case .disconnected: "disconnected"
            case .bye: "the server ended the connection"
            case .sendQueueFull: "the server does not take requests"
            case .endlessMessage: "the server sends a message without an end"
            case .failed(let text): text
            }
        }
    }

    package struct Configuration: Hashable, Sendable {
        package var maximumConnections = 3000
        /// A part of a message that is larger ends the connection.
        package var maximumPartByteCount = 8 << 20
        /// Messages that wait in libzmq for a slow server.
        package var sendQueue = 1000
        /// Parts of messages that wait in libzmq until they are read.
        package var receiveQueue = 300
        package var handshakeTimeout: Duration = .seconds(30)
        /// Between two probes of a connection, and how long an answer may take.
        package var heartbeatInterval: Duration = .seconds(30)
        package var heartbeatTimeout: Duration = .seconds(60)
        /// What a connection may have sent that was not received yet. libzmq limits parts, and messages that wait, but not the parts of one message:
        /// a server could fill the memory with a message that never ends.
        package var maximumUnreceivedByteCount = 128 << 20
        /// Between two looks at that.
        package var checkInterval: Duration = .seconds(1)

        package init() {}
    }

    private let mailbox: OxenMQMailbox<OxenMQLoop.Command>
    private let ended = Ending()

    /// - Parameters:
    ///   - library: libzmq.
    ///   - configuration: Limits and times.
    ///   - handler: Gets every event, in order, on the client's own thread: it must not block for long.
    package init(
        library: ZeroMQLibrary, configuration: Configuration = Configuration(),
        handler: @escaping @Sendable (Connection, Event) -> Flow
    ) {
        let mailbox = OxenMQMailbox<OxenMQLoop.Command>()
        self.mailbox = mailbox
        let ended = ended
        Thread.detachNewThread {
            OxenMQLoop(library: library, configuration: configuration, mailbox: mailbox, handler: handler).run()
            ended.end()
        }
    }

    deinit {
        mailbox.close()
    }

    /// Begins a connection. Its first event is ``Event/hello`` or ``Event/closed(_:)``.
    package func connect(_ connection: Connection, to address: OxenAddress) {
        mailbox.post(.connect(connection.rawValue, address))
    }

    /// After ``Event/hello``; dropped when the connection is not there any more.
    package func request(_ connection: Connection, _ command: String, tag: [UInt8], body: [UInt8]) {
        mailbox.post(.send(connection.rawValue, OxenMQSession.request(command, tag: tag, body: body)))
    }

    /// Reads a connection again after ``Flow/pause``.
    package func resume(_ connection: Connection) {
        mailbox.post(.resume(connection.rawValue))
    }

    /// How many connections a limit of file descriptors allows, when the rest of the process needs some hundred: a TCP socket, and libzmq's own three.
    package static func connectionCount(descriptors: Int) -> Int { max((descriptors - 256) / 4, 16) }

    /// Says BYE. No event of this connection follows, but for those that are being handled.
    package func close(_ connection: Connection) {
        mailbox.post(.close(connection.rawValue))
    }

    /// Ends all connections and the thread.
    package func shutDown() async {
        mailbox.close()
        await ended.wait()
    }
}
