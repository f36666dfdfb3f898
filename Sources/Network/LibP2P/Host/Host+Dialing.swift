import Core
import Logging
import NIOCore
import NIOPosix
import NIOSupport
import Synchronization

extension Host {
    /// Connects to the node at this address unless it is connected already. Concurrent calls for the same peer id share one attempt, which continues
    /// when a caller is cancelled. All addresses that a host name resolves to are tried, at most 8: the next one after 250 ms, beside those that have
    /// not answered (RFC 8305).
    ///
    /// - Parameter address: If it ends in `/p2p/…`, a node with another peer id is refused.
    /// - Throws: ``DialError``, ``NoiseError``, ``MultistreamError``, ``ConnectionError``, or an error of the socket.
    @discardableResult
    public func connect(to address: Multiaddr) async throws -> Connection {
        guard let expected = address.peerID else { return try await dial(address) }
        let dial = try state.withLock { state throws -> Task<Connection, any Error> in
            guard !state.isClosed else { throw ConnectionError.closed }
            if let connection = state.connections.entries[expected]?.link { return Task { connection } }
            if let dial = state.dials[expected] { return dial }
            let dial = Task { [self] in
                defer { self.state.withLock { $0.dials[expected] = nil } }
                return try await self.dial(address)
            }
            state.dials[expected] = dial
            return dial
        }
        return try await dial.value
    }

    private func dial(_ address: Multiaddr) async throws -> Connection {
        guard let endpoint = address.endpoint else { throw DialError.unsupportedAddress }
        guard !isClosed else { throw ConnectionError.closed }
        return try await dial(try await AddressResolver.resolve(endpoint), address)
    }

    /// - Parameter targets: The IP addresses of `address`.
    func dial(_ targets: [SocketAddress], _ address: Multiaddr) async throws -> Connection {
        var targets = targets
        var failure: any Error = DialError.unresolved
        while !targets.isEmpty {
            try Task.checkCancellation()
            do {
                let (target, opened) = try await open(oneOf: targets, address)
                do {
                    return try await opened.get()
                } catch {
                    failure = error
                    // It is no node, or another one: the others may be the node. If the connection ended at once, it was most likely the first.
                    let index = target.flatMap { targets.firstIndex(of: $0) } ?? targets.firstIndex { $0.protocol == .inet6 } ?? 0
                    targets.remove(at: index)
                }
            } catch {
                failure = error
                targets = []
            }
            // Both sides dialed at the same time, and the other connection was kept.
            if let expected = address.peerID, let connection = connection(to: expected) { return connection }
        }
        throw failure
    }

    /// Connects to the first of the addresses that accepts a connection.
    ///
    /// - Returns: The address, nil if the connection ended at once; and the connection after the handshake.
    private func open(
        oneOf targets: [SocketAddress], _ address: Multiaddr
    ) async throws -> (target: SocketAddress?, opened: EventLoopFuture<Connection>) {
        let loop = group.next()
        let bootstrap = ClientBootstrap(group: loop)
            .connectTimeout(configuration.connectTimeout)
            .withConnectionOptions()
            .resolver(ResolvedAddresses(addresses: targets, loop: loop))
        let initialize = { @Sendable (channel: any Channel) in
            channel.eventLoop.makeCompletedFuture {
                (channel, try self.add(channel, .initiator, expecting: address.peerID, remoteAddress: address.withoutPeerID))
            }
        }
        do {
            let (channel, opened) =
                if targets.count == 1 {
                    try await bootstrap.connect(to: targets[0], channelInitializer: initialize)
                } else {
                    try await bootstrap.connect(host: "\(address)", port: targets[0].port ?? 0, channelInitializer: initialize)
                }
            return (channel.remoteAddress, opened)
        } catch let error as NIOConnectionError {
            throw error.connectionErrors.last?.error ?? error
        }
    }

    /// Listens on this address, in addition to others.
    ///
    /// - Parameter address: An IP address and a TCP port; port 0 lets the system choose one.
    /// - Returns: The address with the actual port and with this node's peer id.
    /// - Throws: ``DialError/unsupportedAddress``, ``ConnectionError/closed``, or an error of the socket.
    @discardableResult
    public func listen(on address: Multiaddr) async throws -> Multiaddr {
        guard let endpoint = address.endpoint, case .address(let bytes) = endpoint.host else { throw DialError.unsupportedAddress }
        let channel = try await ServerBootstrap(group: group)
            .serverChannelInitializer { [logger] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptPauseHandler(pause: .seconds(1), message: "failed to accept libp2p connection; pausing", logger: logger))
                }
            }
            .serverChannelOption(ChannelOptions.backlog, value: 128)
            .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(ChannelOptions.writeBufferWaterMark, value: .connection)
            .childChannelOption(ChannelOptions.recvAllocator, value: AdaptiveRecvByteBufferAllocator.connection)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.accept(channel) }
            }
            .bind(to: SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: Int(endpoint.port)))
            .get()
        guard let local = channel.localAddress, let bound = Multiaddr(local) else { throw DialError.unsupportedAddress }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.listeners.append((channel, bound)) }
            return state.isClosed
        }
        if isClosed {
            channel.close(promise: nil)
            throw ConnectionError.closed
        }
        pushInfo()
        return bound.with(peerID)
    }

    /// The addresses that this node listens on, with actual ports and its peer id.
    public var listenAddresses: [Multiaddr] {
        state.withLock { $0.listeners.map { $0.address.with(peerID) } }
    }

    private func accept(_ channel: any Channel) throws {
        let id = ObjectIdentifier(channel)
        let address = channel.remoteAddress.flatMap { IPAddress($0) }
        let (isAdmitted, displaced) = state.withLock { state -> (Bool, (channel: (any Channel)?, block: AddressRange?)?) in
            guard !state.isClosed, case .admitted(let displaced) = state.inbound.admit(id, from: address, at: .now()) else {
                return (false, nil)
            }
            // Within the same critical section, since another connection may displace it from now on.
            state.channels[id] = channel
            return (true, displaced.map { (state.channels[$0], state.inbound.block(of: $0)) })
        }
        guard isAdmitted else {
            configuration.onRefusal?(address?.block)
            throw ConnectionError.refused
        }
        if let displaced {
            configuration.onRefusal?(displaced.block)
            displaced.channel?.close(promise: nil)
        }
        channel.closeFuture.whenComplete { _ in
            self.state.withLock { state in
                state.inbound.left(id)
                state.channels[id] = nil
            }
        }
        _ = try add(channel, .responder, expecting: nil, remoteAddress: channel.remoteAddress.flatMap(Multiaddr.init))
    }

    /// Adds the handlers of a connection to its channel, on the channel's event loop.
    private func add(
        _ channel: any Channel, _ role: NoiseHandshake.Role, expecting expected: PeerID?, remoteAddress: Multiaddr?
    ) throws -> EventLoopFuture<Connection> {
        let opened = channel.eventLoop.makePromise(of: Connection.self)
        let isClosed = state.withLock { state in
            if !state.isClosed { state.channels[ObjectIdentifier(channel)] = channel }
            return state.isClosed
        }
        guard !isClosed else {
            opened.fail(ConnectionError.closed)
            throw ConnectionError.closed
        }
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.channels[ObjectIdentifier(channel)] = nil } }
        let handler = ConnectionHandler(
            role, identity: identity, expecting: expected, remoteAddress: remoteAddress, configuration: configuration, owner: self,
            opened: opened)
        do {
            try channel.pipeline.syncOperations.addHandler(handler)
        } catch {
            opened.fail(error)
            throw error
        }
        return opened.futureResult
    }

    private var isClosed: Bool { state.withLock { $0.isClosed } }
}

extension ClientBootstrap {
    fileprivate func withConnectionOptions() -> ClientBootstrap {
        channelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(ChannelOptions.writeBufferWaterMark, value: .connection)
            .channelOption(ChannelOptions.recvAllocator, value: AdaptiveRecvByteBufferAllocator.connection)
    }
}

extension ChannelOptions.Types.WriteBufferWaterMark {
    /// The limits of a channel's write buffer, in addition to the queues of its streams.
    fileprivate static var connection: ChannelOptions.Types.WriteBufferWaterMark { .init(low: 64 * 1024, high: 256 * 1024) }
}

extension AdaptiveRecvByteBufferAllocator {
    /// The size of a read. NIO keeps four buffers of it for each connection, 64 KiB each by default.
    fileprivate static var connection: AdaptiveRecvByteBufferAllocator { .init(minimum: 512, initial: 2048, maximum: 16 << 10) }
}

extension Multiaddr {
    /// nil for a socket that has no IP address.
    init?(_ address: SocketAddress) {
        guard let ip = address.ipAddress, let port = address.port.flatMap(UInt16.init(exactly:)) else { return nil }
        let host = ip.contains(":") ? "/ip6/\(ip.prefix { $0 != "%" })" : "/ip4/\(ip)"
        guard let address = try? Multiaddr("\(host)/tcp/\(port)") else { return nil }
        self = address
    }
}
