import CZeroMQ
import Foundation
import SessionProtocol
import WakuCrypto

/// A server with oxenmq's framing and CURVE on ROUTER sockets, as in storage servers, for the benchmark, the demo and tests. It accepts any client,
/// on one or many addresses, each with its own key. Uses a single thread.
package final class OxenMQServer: Sendable {
    /// A client's current connection.
    package struct Peer: Hashable, Sendable {
        /// The index of the listener.
        package let listener: Int
        let identity: [UInt8]
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

    private let mailbox: OxenMQMailbox
    /// Left when the thread ends.
    private let running = DispatchGroup()
    package let listeners: [Listener]

    /// - Parameters:
    ///   - library: libzmq, loaded by ``ZeroMQLibrary/load()``.
    ///   - ports: Ports of 127.0.0.1, one for each listener; 0 for any free port.
    ///   - handler: Called with the parts of every message, HI and BYE included, on the server's thread. Returns the messages to send to the peer.
    /// - Throws: ``Failure``
    package init(
        library: ZeroMQLibrary, ports: [UInt16] = [0], handler: @escaping @Sendable (Peer, [[UInt8]]) -> [[[UInt8]]]
    ) async throws {
        let mailbox = OxenMQMailbox()
        let running = running
        running.enter()
        self.mailbox = mailbox
        listeners = try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                do throws(ZeroMQSocket.Failure) {
                    let loop = try OxenMQServerLoop(library: library, ports: ports, mailbox: mailbox, handler: handler)
                    continuation.resume(returning: loop.listeners)
                    loop.run()
                } catch {
                    continuation.resume(throwing: Failure(description: "ZeroMQ cannot listen: \(error.text)"))
                }
                running.leave()
            }
        }
    }

    deinit {
        mailbox.close()
    }

    /// Sends a message. Dropped if the peer has disconnected.
    package func send(_ parts: [[UInt8]], to peer: Peer) {
        mailbox.post((peer, parts))
    }

    /// Closes all connections and ends the thread.
    package func shutDown() async {
        mailbox.close()
        await withCheckedContinuation { continuation in running.notify(queue: .global()) { continuation.resume() } }
    }
}

/// The thread of an ``OxenMQServer``.
private final class OxenMQServerLoop {
    /// Maximum number of messages read from one listener before the next one.
    private static let turn = 200

    private let library: ZeroMQLibrary
    private let context: UnsafeMutableRawPointer
    private let mailbox: OxenMQMailbox
    private let handler: @Sendable (OxenMQServer.Peer, [[UInt8]]) -> [[[UInt8]]]
    private let poll: Int32
    private var sockets: [ZeroMQSocket] = []
    private(set) var listeners: [OxenMQServer.Listener] = []
    private var unread: Set<Int> = []

    init(
        library: ZeroMQLibrary, ports: [UInt16], mailbox: OxenMQMailbox,
        handler: @escaping @Sendable (OxenMQServer.Peer, [[UInt8]]) -> [[[UInt8]]]
    ) throws(ZeroMQSocket.Failure) {
        (self.library, self.mailbox, self.handler) = (library, mailbox, handler)
        let table = library.table.pointee
        guard let context = table.zmq_ctx_new() else { throw ZeroMQSocket.Failure(text: "no memory for a context") }
        self.context = context
        _ = table.zmq_ctx_set(context, Int32(CZMQ_MAX_SOCKETS), Int32(clamping: ports.count + 16))
        poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        for port in ports { try listen(on: port) }
        watch(mailbox.descriptor, as: 0)
    }

    deinit {
        close(poll)
    }

    private func listen(on port: UInt16) throws(ZeroMQSocket.Failure) {
        let secret = SecretBytes.random(count: X25519PrivateKey.byteCount)
        guard let key = secret.withBytes({ X25519PrivateKey(bytes: $0) }) else { return }
        let socket = try ZeroMQSocket(library, context: context, type: CZMQ_ROUTER)
        for (option, value) in [
            (CZMQ_LINGER, 0), (CZMQ_ROUTER_MANDATORY, 1), (CZMQ_SNDHWM, 0), (CZMQ_RCVHWM, 0), (CZMQ_BACKLOG, 1000), (CZMQ_CURVE_SERVER, 1),
        ] { try socket.set(option, value) }
        try socket.set(CZMQ_CURVE_SECRETKEY, secret.withBytes { Array($0) })
        let endpoint = try socket.bind(to: "tcp://127.0.0.1:\(port == 0 ? "*" : String(port))")
        guard let bound = endpoint.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw ZeroMQSocket.Failure(text: "bound to \(endpoint)")
        }
        sockets.append(socket)
        listeners.append(OxenMQServer.Listener(publicKey: key.publicKey, port: bound))
        watch(socket.descriptor, as: UInt64(sockets.count))
    }

    private func watch(_ descriptor: Int32, as name: UInt64) {
        var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: name))
        _ = epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event)
    }

    /// Runs until the mailbox is closed.
    func run() {
        var events = [epoll_event](repeating: epoll_event(), count: 256)
        while true {
            let count = epoll_wait(poll, &events, Int32(events.count), unread.isEmpty ? -1 : 0)
            var ready = unread
            unread = []
            for event in events.prefix(Int(max(count, 0))) where event.data.u64 > 0 { ready.insert(Int(event.data.u64) - 1) }
            let (commands, isClosed) = mailbox.take()
            if isClosed { break }
            for (peer, parts) in commands {
                _ = sockets[peer.listener].send([peer.identity] + parts)
                // Sending may have consumed the notification that there are messages to receive.
                ready.insert(peer.listener)
            }
            for index in ready { read(index) }
        }
        for socket in sockets { socket.close() }
        _ = library.table.pointee.zmq_ctx_term(context)
    }

    private func read(_ index: Int) {
        for _ in 0..<Self.turn {
            guard let parts = sockets[index].receive(maximumPartCount: OxenMQSession.maximumPartCount) else { return }
            guard let identity = parts.first else { continue }
            let peer = OxenMQServer.Peer(listener: index, identity: identity)
            for parts in handler(peer, Array(parts.dropFirst())) { _ = sockets[index].send([identity] + parts) }
        }
        unread.insert(index)
    }
}
