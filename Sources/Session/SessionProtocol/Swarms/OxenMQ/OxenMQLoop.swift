import CZeroMQ
import Foundation
import Core

/// The thread of an ``OxenMQClient``. Waits with epoll on the descriptors of all sockets: `zmq_poll` checks every socket each time it wakes, which
/// with 2,000 connections takes longer than the actual work.
final class OxenMQLoop {
    enum Command: Sendable {
        case connect(UInt64, OxenAddress)
        case send(UInt64, [[UInt8]])
        case resume(UInt64)
        case close(UInt64)
    }

    private struct Link {
        let socket: ZeroMQSocket
        let monitor: ZeroMQSocket
        var session = OxenMQSession()
        var isPaused = false
        var unreceived = UnreceivedBytes()
    }

    /// Maximum number of messages read from one connection before the next one.
    private static let turn = 200
    /// Milliseconds for which a closed connection may still send its BYE.
    private static let linger = 200
    private static let monitoredEvents =
        CZMQ_EVENT_CONNECTED | CZMQ_EVENT_CLOSED | CZMQ_EVENT_DISCONNECTED | CZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
        | CZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
        | CZMQ_EVENT_HANDSHAKE_FAILED_AUTH

    private let library: ZeroMQLibrary
    private let configuration: OxenMQClient.Configuration
    private let mailbox: OxenMQMailbox<Command>
    private let handler: @Sendable (ConnectionNumber, OxenMQClient.Event) -> OxenMQClient.Flow
    private let context: UnsafeMutableRawPointer
    private let poll: Int32
    /// CURVE keys of this process only: 41 bytes each, Z85 and NUL.
    private let keys: (publicKey: [UInt8], secretKey: [UInt8])
    private var links: [UInt64: Link] = [:]
    /// Connections with more messages than were read in their turn.
    private var unread: Set<UInt64> = []

    init(
        library: ZeroMQLibrary, configuration: OxenMQClient.Configuration, mailbox: OxenMQMailbox<Command>,
        handler: @escaping @Sendable (ConnectionNumber, OxenMQClient.Event) -> OxenMQClient.Flow
    ) {
        (self.library, self.configuration, self.mailbox, self.handler) = (library, configuration, mailbox, handler)
        let table = library.table.pointee
        guard let context = table.zmq_ctx_new() else { preconditionFailure("libzmq has no memory for a context") }
        self.context = context
        // Each connection has a socket, and a pair of sockets that reports its events.
        let limit = table.zmq_ctx_get(context, Int32(CZMQ_SOCKET_LIMIT))
        _ = table.zmq_ctx_set(context, Int32(CZMQ_MAX_SOCKETS), min(Int32(clamping: 3 * configuration.maximumConnections + 16), limit))
        var (publicKey, secretKey) = ([CChar](repeating: 0, count: 41), [CChar](repeating: 0, count: 41))
        precondition(table.zmq_curve_keypair(&publicKey, &secretKey) == 0, "libzmq makes no key")
        keys = (publicKey.map { UInt8(bitPattern: $0) }, secretKey.map { UInt8(bitPattern: $0) })
        poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        precondition(poll >= 0, "the system has no descriptor for epoll")
        watch(mailbox.descriptor, as: 0)
    }

    /// Runs until the mailbox is closed.
    func run() {
        var events = [epoll_event](repeating: epoll_event(), count: 256)
        var checkAt = Instant.now + configuration.checkInterval
        while true {
            let wait = links.isEmpty ? -1 : Int32(clamping: Self.milliseconds(configuration.checkInterval))
            let count = epoll_wait(poll, &events, Int32(events.count), unread.isEmpty ? wait : 0)
            var (hasCommands, ready, changed) = (false, unread, [UInt64]())
            unread = []
            for event in events.prefix(Int(max(count, 0))) {
                switch event.data.u64 {
                case 0: hasCommands = true
                case let name where name & 1 == 1: changed.append(name >> 1)
                case let name: ready.insert(name >> 1)
                }
            }
            for number in ready { read(number) }
            for number in changed { readMonitor(number) }
            let now = Instant.now
            if checkAt <= now {
                checkUnreceived(at: now)
                checkAt = now + configuration.checkInterval
            }
            guard hasCommands else { continue }
            let (commands, isClosed) = mailbox.take()
            if isClosed { break }
            for command in commands { perform(command) }
        }
        for number in links.keys.sorted() { end(number, sayingBye: true) }
        // Returns when lingering messages were sent or timed out.
        _ = library.table.pointee.zmq_ctx_term(context)
        Foundation.close(poll)
    }

    private func perform(_ command: Command) {
        switch command {
        case .connect(let number, let address): connect(number, address)
        case .close(let number): end(number, sayingBye: true)
        case .resume(let number): resume(number)
        case .send(let number, let parts):
            guard let link = links[number], link.session.isReady else { return }
            if link.socket.send(parts) {
                // Sending may have consumed the notification that there are messages to receive.
                read(number)
            } else {
                close(number, .sendQueueFull)
            }
        }
    }

    // MARK: Connections

    private func connect(_ number: UInt64, _ address: OxenAddress) {
        guard links[number] == nil else { return }
        guard links.count < configuration.maximumConnections else {
            emit(number, .closed(.failed("too many connections")))
            return
        }
        do throws(ZeroMQSocket.Failure) {
            let link = try makeLink(number, address)
            links[number] = link
            watch(link.socket.descriptor, as: number << 1)
            watch(link.monitor.descriptor, as: number << 1 | 1)
            try link.socket.connect(to: address.endpoint)
            guard link.socket.send(OxenMQSession.greeting) else { return close(number, .sendQueueFull) }
            read(number)
            readMonitor(number)
        } catch {
            close(number, .failed(error.text))
        }
    }

    private func makeLink(_ number: UInt64, _ address: OxenAddress) throws(ZeroMQSocket.Failure) -> Link {
        let socket = try ZeroMQSocket(library, context: context, type: CZMQ_DEALER)
        try socket.set(CZMQ_LINGER, 0)
        // No reconnection: the caller decides on another attempt.
        try socket.set(CZMQ_RECONNECT_IVL, -1)
        try socket.set(CZMQ_SNDHWM, configuration.sendQueue)
        try socket.set(CZMQ_RCVHWM, configuration.receiveQueue)
        try socket.setSize(CZMQ_MAXMSGSIZE, configuration.maximumPartByteCount)
        try socket.set(CZMQ_HANDSHAKE_IVL, Self.milliseconds(configuration.handshakeTimeout))
        try socket.set(CZMQ_CONNECT_TIMEOUT, Self.milliseconds(configuration.handshakeTimeout))
        try socket.set(CZMQ_HEARTBEAT_IVL, Self.milliseconds(configuration.heartbeatInterval))
        try socket.set(CZMQ_HEARTBEAT_TIMEOUT, Self.milliseconds(configuration.heartbeatTimeout))
        if address.endpoint.hasPrefix("tcp://[") { try socket.set(CZMQ_IPV6, 1) }
        if let serverKey = address.serverKey {
            try socket.set(CZMQ_CURVE_SERVERKEY, serverKey)
            try socket.set(CZMQ_CURVE_PUBLICKEY, keys.publicKey)
            try socket.set(CZMQ_CURVE_SECRETKEY, keys.secretKey)
        }
        let name = "inproc://monitor-\(number)"
        try socket.monitor(at: name, events: Self.monitoredEvents)
        let monitor = try ZeroMQSocket(library, context: context, type: CZMQ_PAIR)
        try monitor.set(CZMQ_LINGER, 0)
        try monitor.connect(to: name)
        return Link(socket: socket, monitor: monitor)
    }

    private static func milliseconds(_ duration: Duration) -> Int { Int(duration / .milliseconds(1)) }

    private func close(_ number: UInt64, _ reason: OxenMQClient.Reason) {
        end(number, sayingBye: false)
        emit(number, .closed(reason))
    }

    /// Ends a connection without an event.
    private func end(_ number: UInt64, sayingBye: Bool) {
        guard let link = links.removeValue(forKey: number) else { return }
        unread.remove(number)
        if sayingBye, link.session.isReady, link.socket.send(OxenMQSession.farewell) { try? link.socket.set(CZMQ_LINGER, Self.linger) }
        for descriptor in [link.socket.descriptor, link.monitor.descriptor] { _ = epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, nil) }
        link.socket.endMonitor()
        link.monitor.close()
        link.socket.close()
    }

    private func watch(_ descriptor: Int32, as name: UInt64) {
        var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: name))
        _ = epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event)
    }

    // MARK: Receiving

    private func read(_ number: UInt64) {
        guard links[number]?.isPaused == false else { return }
        for _ in 0..<Self.turn {
            guard let message = links[number]?.socket.receive(maximumPartCount: OxenMQSession.maximumPartCount) else { return }
            links[number]?.unreceived.received(message.wireByteCount)
            if received(message.parts, number) == .pause { return pause(number) }
        }
        if links[number] != nil { unread.insert(number) }
    }

    /// Reads the remaining messages of a connection that has ended, paused or not. At most libzmq's receive queue is left.
    private func readRest(_ number: UInt64) {
        for _ in 0..<configuration.receiveQueue {
            guard let message = links[number]?.socket.receive(maximumPartCount: OxenMQSession.maximumPartCount) else { return }
            _ = received(message.parts, number)
        }
    }

    private func received(_ parts: [[UInt8]], _ number: UInt64) -> OxenMQClient.Flow {
        guard let event = links[number]?.session.receive(parts) else { return .proceed }
        if case .closed = event { end(number, sayingBye: false) }
        return emit(number, event)
    }

    /// Stops waiting for the descriptor of a paused connection, which stays readable.
    private func pause(_ number: UInt64) {
        guard let link = links[number] else { return }
        links[number]?.isPaused = true
        _ = epoll_ctl(poll, EPOLL_CTL_DEL, link.socket.descriptor, nil)
    }

    private func resume(_ number: UInt64) {
        guard let link = links[number], link.isPaused else { return }
        links[number]?.isPaused = false
        watch(link.socket.descriptor, as: number << 1)
        unread.insert(number)
    }

    private func checkUnreceived(at now: Instant) {
        var counts: [UInt64: Int] = [:]
        for number in links.keys { counts[number] = links[number]?.unreceived.count(at: now) }
        for number in configuration.unreceived.excess(counts) {
            // Whole messages before the endless one.
            readRest(number)
            if links[number] != nil { close(number, .endlessMessage) }
        }
    }

    /// Reads socket events: messages of two parts, event and value (6 bytes), and the address.
    private func readMonitor(_ number: UInt64) {
        while let parts = links[number]?.monitor.receive(maximumPartCount: 2)?.parts {
            guard let head = parts.first, head.count >= 2 else { continue }
            let event = Int(head[0]) | Int(head[1]) << 8
            if event == CZMQ_EVENT_CONNECTED {
                let value = head.dropFirst(2).prefix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                links[number]?.unreceived.connected(Int32(bitPattern: value), at: .now)
                continue
            }
            // Messages received before the end are read first.
            readRest(number)
            guard links[number] != nil else { return }
            switch event {
            case CZMQ_EVENT_CLOSED: close(number, .refused)
            case CZMQ_EVENT_DISCONNECTED: close(number, .disconnected)
            default: close(number, .handshakeFailed)
            }
        }
    }

    @discardableResult private func emit(_ number: UInt64, _ event: OxenMQClient.Event) -> OxenMQClient.Flow {
        handler(ConnectionNumber(rawValue: number), event)
    }
}
