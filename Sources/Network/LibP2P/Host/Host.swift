import Core
public import Logging
public import NIOCore
public import NIOPosix
import Synchronization

/// A libp2p node: it listens, dials, and keeps one connection per peer with any number of protocol streams.
///
///     let host = Host(key: .generate())
///     host.serve("/echo/1.0.0") { stream in
///         while let bytes = try await stream.read() { try await stream.write(bytes) }
///     }
///     let address = try await host.listen(on: Multiaddr("/ip4/127.0.0.1/tcp/0"))
///
/// Transports: TCP with Noise and yamux. Identify and ping are served automatically. All methods may be called from any thread; services run in
/// tasks of their own. Close a host with ``close()``: until then its listeners and connections keep it alive.
public final class Host: Sendable {
    /// Serves one stream of a protocol, on the event loop of its connection: long work goes elsewhere. The stream is closed when the service returns, and
    /// reset when it throws.
    public typealias Service = @Sendable (PeerStream) async throws -> Void

    /// The node's private key.
    public let key: NodeKey
    /// The settings, with limits lowered to fit the process's file descriptor limit.
    public let configuration: HostConfiguration
    let identity: NoiseIdentity
    let group: any EventLoopGroup
    let logger: Logger
    let state: Mutex<State>
    let traffic = Traffic()
    let memory: MemoryBudget
    /// What waits for several peers, see ``charge(_:)``.
    let shared: MemoryAccount

    struct State {
        struct Served {
            let service: Service
            /// The first of the protocol ids that are served together.
            let name: String
            let streamLimit: Int
        }

        struct ServedStream: Hashable {
            let peer: PeerID
            let service: String
        }

        var services: [String: Served] = [:]
        var servedStreams: [ServedStream: Int] = [:]
        var connections: ConnectionTable<Connection>
        var inbound: InboundTable<ObjectIdentifier>
        var infos: [PeerID: PeerInfo] = [:]
        /// The memory accounted for `infos`.
        var infoCharges: [PeerID: MemoryCharge] = [:]
        var dials: [PeerID: Task<Connection, any Error>] = [:]
        var listeners: [(channel: any Channel, address: Multiaddr)] = []
        var channels: [ObjectIdentifier: any Channel] = [:]
        var subscribers: [UInt64: AsyncStream<HostEvent>.Continuation] = [:]
        var nextSubscriber: UInt64 = 0
        /// See ``Host/freeMemory(_:)``.
        var freeMemory: (@Sendable (_ byteCount: Int, _ limit: Int) -> [PeerID: Int])?
        var isPushPending = false
        var isClosed = false
    }

    /// The id by which peers know this node.
    public var peerID: PeerID { key.peerID }

    /// Creates a node that neither listens nor dials yet.
    ///
    /// - Parameters:
    ///   - logger: For disconnected peers and connections that could not be accepted.
    ///   - group: The event loops of the connections. The host does not shut them down.
    public init(
        key: NodeKey, configuration: HostConfiguration = HostConfiguration(), logger: Logger = Logger(label: "libp2p"),
        group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    ) {
        self.key = key
        let configuration = configuration.fitted(toDescriptors: DescriptorLimit.current)
        self.configuration = configuration
        self.logger = logger
        self.group = group
        identity = NoiseIdentity(key)
        memory = MemoryBudget(limit: configuration.inboundMemoryLimit)
        shared = MemoryAccount(memory)
        state = Mutex(
            State(
                connections: ConnectionTable(own: key.peerID, limit: configuration.connectionLimit),
                inbound: InboundTable(configuration)))
        serve(Ping.id, streamsPerPeer: 2) { try await Ping.serve($0) }
        serve(Identify.id, streamsPerPeer: 2) { [weak self] stream in
            if let self { try await Identify.send(self.ownInfo, on: stream) }
        }
        serve(Identify.pushID, streamsPerPeer: 8) { [weak self] stream in
            stream.endAfter(Identify.limit)
            do {
                let info = try await Identify.receive(stream)
                self?.identified(stream.connection, info)
            } catch {
                stream.reset()
            }
            // Limits the rate of changes: each one is an event for all subscribers. A task of its own, which does not end when the peer resets the stream.
            let pause = configuration.pushPause
            await Task { try? await Task.sleep(for: pause) }.value
        }
    }

    // MARK: Services

    /// Serves a protocol, replacing an earlier service of the same id, and reports it to the connected peers.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of open streams of the protocol that a peer may open. Further ones are reset.
    ///   - service: Called for each stream that a peer opens.
    public func serve(_ protocolID: String, streamsPerPeer limit: Int = 16, _ service: @escaping Service) {
        serve([protocolID], streamsPerPeer: limit, service)
    }

    /// Serves several versions of a protocol with one service. `limit` applies to their streams together.
    public func serve(_ protocolIDs: [String], streamsPerPeer limit: Int = 16, _ service: @escaping Service) {
        guard let name = protocolIDs.first else { return }
        let served = State.Served(service: service, name: name, streamLimit: limit)
        state.withLock { state in
            for id in protocolIDs { state.services[id] = served }
        }
        pushInfo()
    }

    // MARK: Streams

    /// Opens a stream to a connected peer, with the first of these protocols that the peer supports.
    ///
    /// - Throws: ``ConnectionError``: `notConnected`, `tooManyStreams`, `timedOut`; ``MultistreamError/refused`` if the peer supports none of them.
    public func openStream(to peer: PeerID, _ protocolIDs: [String]) async throws -> PeerStream {
        guard let connection = connection(to: peer) else { throw ConnectionError.notConnected }
        return try await connection.openStream(protocolIDs, within: configuration.negotiationTimeout)
    }

    /// Sends a request on a stream of its own and waits for the response, each prefixed with its length as a varint.
    ///
    /// - Parameters:
    ///   - responseLimit: The maximum length of the response, in bytes.
    ///   - limit: Timeout of the negotiation of the stream's protocol, and then of the response.
    /// - Throws: ``ConnectionError``, ``MultistreamError/refused``
    public func request(
        _ message: ByteBuffer, to peer: PeerID, _ protocolID: String, responseLimit: Int, within limit: TimeAmount = .seconds(10)
    ) async throws -> ByteBuffer {
        guard let connection = connection(to: peer) else { throw ConnectionError.notConnected }
        let stream = try await connection.openStream([protocolID], within: min(limit, configuration.negotiationTimeout))
        defer { stream.close() }
        stream.endAfter(limit)
        // Not finished before the response: then nim-libp2p before 1.13 forgets the stream once it has written the response, and ends the connection at the
        // next window update for it.
        try await stream.writeMessage(message)
        var reader = MessageReader(stream, limit: responseLimit)
        guard let response = try await reader.next() else { throw ConnectionError.closedByPeer }
        return response
    }

    /// Measures the round trip time to a peer, on a stream of its own.
    ///
    /// - Throws: ``ConnectionError``: `notConnected`, `timedOut`; ``MultistreamError/refused`` if the peer does not serve ping.
    public func ping(_ peer: PeerID) async throws -> Duration {
        guard let connection = connection(to: peer) else { throw ConnectionError.notConnected }
        return try await Ping.measure(connection)
    }

    // MARK: Peers

    /// Bytes received on all connections so far, as on the wire.
    public var bytesReceived: Int { traffic.bytesReceived }
    /// Bytes sent on all connections so far, as on the wire.
    public var bytesSent: Int { traffic.bytesSent }

    /// The present connection to a peer; nil when there is none.
    public func connection(to peer: PeerID) -> Connection? {
        state.withLock { $0.connections.entries[peer]?.link }
    }

    /// All connected peers, in no particular order.
    public var peers: [PeerStatus] {
        state.withLock { state in
            state.connections.entries.map { PeerStatus(connection: $0.value.link, info: state.infos[$0.key]) }
        }
    }

    /// Closes the connection to a peer, if there is one. The peer may connect again.
    public func disconnect(_ peer: PeerID) {
        connection(to: peer)?.close(.closed)
    }

    /// Updates how useful peers are, which decides whose connections are closed when there are too many or they use too much memory. Call it
    /// regularly, with all useful peers: the others count as not useful.
    public func rate(_ standings: [PeerID: PeerStanding]) {
        state.withLock { $0.inbound.rate(standings, at: .now()) }
    }

    // MARK: Events

    /// The events from now on, after an event for each connected and each identified peer. The sequence ends when the host is closed, and for a
    /// subscriber that lags behind by more than 4,096 events, which can call this again.
    public func events() -> AsyncStream<HostEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: HostEvent.self, bufferingPolicy: .bufferingOldest(4_096))
        state.withLock { state in
            guard !state.isClosed else { return continuation.finish() }
            for entry in state.connections.entries.values { continuation.yield(.connected(entry.link)) }
            for (peer, info) in state.infos { continuation.yield(.identified(peer, info)) }
            let number = state.nextSubscriber
            state.nextSubscriber += 1
            state.subscribers[number] = continuation
            continuation.onTermination = { [weak self] reason in
                // A finished stream was removed before, under the lock. A cancellation handler runs with the cancelled task's status lock held,
                // which yielding an event under the host's lock waits for: so waiting for the host's lock here would deadlock.
                if case .cancelled = reason { Task.detached { self?.unsubscribe(number) } }
            }
        }
        return stream
    }

    private func unsubscribe(_ number: UInt64) {
        state.withLock { _ = $0.subscribers.removeValue(forKey: number) }
    }

    // MARK: Closing

    /// Stops listening, closes all connections, and waits for their sockets to be closed. The host cannot be used afterwards.
    public func close() async {
        let (channels, connections, dials) = state.withLock { state in
            state.isClosed = true
            defer { state.listeners = [] }
            return (
                state.listeners.map(\.channel) + state.channels.values, state.connections.entries.values.map(\.link),
                Array(state.dials.values)
            )
        }
        for dial in dials { dial.cancel() }
        for connection in connections { connection.close(.closed) }
        for channel in channels {
            channel.close(promise: nil)
            try? await channel.closeFuture.get()
        }
        state.withLock { state in
            for subscriber in state.subscribers.values { subscriber.finish() }
            state.subscribers = [:]
        }
    }
}

extension Host.State {
    mutating func forgetInfo(of peer: PeerID) {
        infos[peer] = nil
        infoCharges[peer] = nil
    }

    mutating func emit(_ event: HostEvent) {
        for (number, subscriber) in subscribers {
            guard case .dropped = subscriber.yield(event) else { continue }
            subscribers[number] = nil
            subscriber.finish()
        }
    }
}
