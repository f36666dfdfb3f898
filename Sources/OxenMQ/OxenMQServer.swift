import CZeroMQ
import Foundation
package import WakuCrypto

/// A server of oxenmq's framing with CURVE on a ROUTER: what storage servers have, for the benchmark, the demonstration and tests. It accepts any client.
package final class OxenMQServer: Sendable {
    /// A client's connection, as long as it lasts.
    package typealias Peer = [UInt8]

    /// It cannot listen.
    package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    enum Command: Sendable {
        case send([[UInt8]])
    }

    private let mailbox: OxenMQMailbox<Command>
    private let ended = Ending()
    /// Its X25519 key, 32 bytes.
    package let publicKey: [UInt8]
    package let port: UInt16

    /// - Parameters:
    ///   - library: libzmq.
    ///   - port: Of 127.0.0.1; 0 for one that is free.
    ///   - key: Its X25519 key for CURVE, 32 bytes.
    ///   - handler: Gets the parts of every message, HI and BYE included, on the server's own thread. What it returns is sent to the peer.
    /// - Throws: ``Failure``
    package init(
        library: ZeroMQLibrary, port: UInt16 = 0, key: SecretBytes = .random(count: X25519PrivateKey.byteCount),
        handler: @escaping @Sendable (Peer, [[UInt8]]) -> [[[UInt8]]]
    ) async throws {
        let mailbox = OxenMQMailbox<Command>()
        let ended = ended
        self.mailbox = mailbox
        guard let pair = key.withBytes({ X25519PrivateKey(bytes: $0) }) else { throw Failure(description: "the key has not 32 bytes") }
        publicKey = pair.publicKey
        self.port = try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                do throws(ZeroMQSocket.Failure) {
                    let loop = try ServerLoop(library: library, port: port, key: key, mailbox: mailbox, handler: handler)
                    continuation.resume(returning: loop.port)
                    loop.run()
                } catch {
                    continuation.resume(throwing: Failure(description: "ZeroMQ on port \(port): \(error.text)"))
                }
                ended.end()
            }
        }
    }

    deinit {
        mailbox.close()
    }

    /// Lost when the peer is gone.
    package func send(_ parts: [[UInt8]], to peer: Peer) {
        mailbox.post(.send([peer] + parts))
    }

    /// Ends all connections and the thread.
    package func shutDown() async {
        mailbox.close()
        await ended.wait()
    }
}

private final class ServerLoop {
    private static let turn = 1000

    private let library: ZeroMQLibrary
    private let context: UnsafeMutableRawPointer
    private let socket: ZeroMQSocket
    private let mailbox: OxenMQMailbox<OxenMQServer.Command>
    private let handler: @Sendable (OxenMQServer.Peer, [[UInt8]]) -> [[[UInt8]]]
    let port: UInt16

    init(
        library: ZeroMQLibrary, port: UInt16, key: SecretBytes, mailbox: OxenMQMailbox<OxenMQServer.Command>,
        handler: @escaping @Sendable (OxenMQServer.Peer, [[UInt8]]) -> [[[UInt8]]]
    ) throws(ZeroMQSocket.Failure) {
        (self.library, self.mailbox, self.handler) = (library, mailbox, handler)
        let table = library.table.pointee
        guard let context = table.zmq_ctx_new() else { throw ZeroMQSocket.Failure(text: "no memory for a context") }
        self.context = context
        _ = table.zmq_ctx_set(context, Int32(CZMQ_MAX_SOCKETS), 10_000)
        socket = try ZeroMQSocket(library, context: context, type: CZMQ_ROUTER)
        for (option, value) in [
            (CZMQ_LINGER, 0), (CZMQ_ROUTER_MANDATORY, 1), (CZMQ_SNDHWM, 0), (CZMQ_RCVHWM, 0), (CZMQ_BACKLOG, 1000),
            (CZMQ_CURVE_SERVER, 1),
        ] { try socket.set(option, value) }
        try socket.set(CZMQ_CURVE_SECRETKEY, key.withBytes { Array($0) })
        let endpoint = try socket.bind(to: "tcp://127.0.0.1:\(port == 0 ? "*" : String(port))")
        guard let bound = endpoint.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw ZeroMQSocket.Failure(text: "bound to \(endpoint)")
        }
        self.port = bound
    }

    /// Until the mailbox is closed.
    func run() {
        var descriptors = [socket.descriptor, mailbox.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var hasMore = false
        while true {
            poll(&descriptors, nfds_t(descriptors.count), hasMore ? 0 : -1)
            let (commands, isClosed) = mailbox.take()
            if isClosed { break }
            for case .send(let parts) in commands { _ = socket.send(parts) }
            hasMore = read()
        }
        socket.close()
        _ = library.table.pointee.zmq_ctx_term(context)
    }

    /// - Returns: Whether there may be more.
    private func read() -> Bool {
        for _ in 0..<Self.turn {
            guard let message = socket.receive(maximumPartCount: OxenMQSession.maximumPartCount) else { return false }
            guard let peer = message.parts.first else { continue }
            for parts in handler(peer, Array(message.parts.dropFirst())) { _ = socket.send([peer] + parts) }
        }
        return true
    }
}
