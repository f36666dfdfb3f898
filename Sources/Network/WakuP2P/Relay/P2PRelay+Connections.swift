import GossipSub
import LibP2P
import Logging
import NIOCore
import Core
import Synchronization
import Waku

/// Connections to peers, and the protocols on them.
extension P2PRelay {
    /// Keeps one configured peer connected.
    func keepConnected(to address: Multiaddr) async {
        let backoff = ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(30))
        var failures = 0
        /// The last failure in the log.
        var reported: String?
        while !Task.isCancelled {
            do {
                let start = Instant.now
                var connection: Connection? = try await host.connect(to: address)
                // Another one may have replaced it.
                while let open = connection {
                    await open.waitUntilClosed()
                    connection = host.connection(to: open.peer)
                }
                // A connection that is lost at once counts as a further failure.
                let wasLost = Instant.now - start > .seconds(10)
                failures = wasLost ? 1 : failures + 1
                if wasLost { reported = nil }
            } catch {
                failures += 1
                guard !Task.isCancelled else { return }
                let reason = "\(error)"
                if reason != reported {
                    logger.warning("failed to connect to peer", metadata: ["address": "\(address)", "reason": "\(reason)"])
                    reported = reason
                }
                lockedState.withLock { $0.detachedReason = "the peers can't be reached" }
            }
            try? await Task.sleep(for: backoff.delay(afterFailures: failures, jitter: .random(in: 0...1)))
        }
    }

    func handleConnections() async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                // The sequence ends when this task lags behind; the next one starts with the connected peers. Disconnections were missed.
                let events = host.events()
                driver.disconnectOthers { peer in host.connection(to: peer).map { ObjectIdentifier($0) } }
                for await event in events {
                    switch event {
                    case .connected(let connection): group.addTask { await self.handle(connection) }
                    case .disconnected(let peer, _):
                        driver.disconnected(peer, current: host.connection(to: peer).map { ObjectIdentifier($0) })
                    case .identified, .notIdentified: break
                    }
                }
                guard !Task.isCancelled else { return }
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    /// Checks the peer's cluster, then gossips or subscribes until the connection ends.
    private func handle(_ connection: Connection) async {
        // The start of each sequence of events reports connections that are handled already.
        guard lockedState.withLock({ $0.handledConnections.insert(ObjectIdentifier(connection)).inserted }) else { return }
        defer { lockedState.withLock { _ = $0.handledConnections.remove(ObjectIdentifier(connection)) } }
        let peer = connection.peer
        let metadata = await metadata(of: peer)
        // The outcome over a connection that was replaced says nothing about its successor, which is handled by another task.
        guard isCurrent(connection) else { return }
        let connected = Set(host.peers.map(\.connection.peer))
        lockedState.withLock { $0.noteMetadata(metadata, of: peer, connected: connected) }
        let cluster = metadata.map { PeerCluster.answered($0.clusterID) } ?? .unknown
        if let reason = cluster.mismatch(with: configuration) {
            let reasonIsNew = lockedState.withLock { state in
                defer { state.detachedReason = reason }
                return state.detachedReason != reason
            }
            // Of a configured peer it is a configuration error; found and inbound peers of other clusters are common.
            let level: Logger.Level = isConfigured(peer) && reasonIsNew ? .warning : .debug
            logger.log(level: level, "peer disconnected", metadata: ["peer": "\(peer)", "reason": "\(reason)"])
            return host.disconnect(peer)
        }
        while !Task.isCancelled, isCurrent(connection) {
            do {
                return try await isFilterClient ? filter(over: connection) : gossip(over: connection)
            } catch is MultistreamError {
                // The peer may still have a store. A configured peer may still be starting.
                logger.debug("peer does not support the protocol", metadata: ["peer": "\(peer)"])
                lockedState.withLock { $0.detachedReason = isFilterClient ? "a peer is not a filter node" : "a peer does not gossip" }
                guard isConfigured(peer) else { return }
                try? await Task.sleep(for: Self.protocolRetryInterval)
            } catch {
                // Gossip cannot be resumed in the middle: a new connection starts with the subscriptions.
                if isCurrent(connection) { host.disconnect(peer) }
                return
            }
        }
    }

    private static let protocolRetryInterval = Duration.seconds(30)

    private func gossip(over connection: Connection) async throws {
        let peer = connection.peer
        let stream = try await host.openStream(to: peer, Self.gossipProtocols)
        defer { stream.close() }
        guard stream.connection === connection else { return }
        let version = GossipVersion(protocolID: stream.protocolID) ?? .v11
        let id = ObjectIdentifier(connection)
        let (isConnected, outcome) = driver.connected(
            peer, over: id, version: version, isOutbound: !connection.isInbound, onFrames: stream.announce
        ) { isCurrent(connection) }
        lockedState.withLock { $0.reachedPeer() }
        await carryOut(outcome)
        guard isConnected else { return }
        stream.send { self.driver.nextFrame(to: peer, over: id) }
        // The peer sends nothing on this stream. When it ends the stream, it no longer reads this node's messages.
        while try await stream.read() != nil {}
        throw ConnectionError.closedByPeer
    }

    func isCurrent(_ connection: Connection) -> Bool { host.connection(to: connection.peer) === connection }

    /// Whether the operator configured the peer.
    func isConfigured(_ peer: PeerID) -> Bool { configuration.peers.contains { $0.peerID == peer } }

    /// nil if the peer does not answer.
    private func metadata(of peer: PeerID) async -> WakuMetadata? {
        try? await request(ownMetadata.encoded(), of: peer, WakuProtocol.metadata, WakuMetadata.init(parsing:))
    }

    private var ownMetadata: WakuMetadata {
        WakuMetadata(
            clusterID: configuration.clusterID, shards: configuration.pubsubTopics.compactMap(\.relayShard).map { UInt32($0.shard) })
    }

    /// Sends a request on a stream of its own and parses the response.
    func request<Response>(
        _ request: [UInt8], of peer: PeerID, _ protocolID: String, limit: Int = WakuProtocol.maximumSmallFrameByteCount,
        within timeout: TimeAmount = .seconds(10), _ parse: ([UInt8]) throws -> Response
    ) async throws -> Response {
        let response = try await host.request(ByteBuffer(bytes: request), to: peer, protocolID, responseLimit: limit, within: timeout)
        return try parse(Array(response.readableBytesView))
    }

    // MARK: Serving

    private static let gossipProtocols = [WakuProtocol.relay, "/meshsub/1.2.0", "/meshsub/1.1.0"]

    /// Registers the protocols that peers can open streams for.
    func serveProtocols() {
        if isFilterClient { serveFilterPushes() } else { serveGossip() }
        let metadata = ByteBuffer(bytes: ownMetadata.encoded())
        host.serve(WakuProtocol.metadata) { stream in
            stream.endAfter(.seconds(10))
            var reader = MessageReader(stream, limit: WakuProtocol.maximumSmallFrameByteCount)
            guard try await reader.next() != nil else { return }
            try await stream.writeMessage(metadata)
        }
    }

    private func serveGossip() {
        host.serve(Self.gossipProtocols, streamsPerPeer: 2) { [weak self] stream in
            guard let self else { return }
            let version = GossipVersion(protocolID: stream.protocolID) ?? .v11
            let id = ObjectIdentifier(stream.connection)
            let (_, outcome) = driver.connected(
                stream.peer, over: id, version: version, isOutbound: !stream.connection.isInbound
            ) { self.isCurrent(stream.connection) }
            driver.streamBegan(of: stream.peer, over: id)
            defer { driver.streamEnded(of: stream.peer, over: id) }
            await carryOut(outcome)
            var reader = MessageReader(stream, limit: GossipRPC.maximumByteCount)
            // On the event loop, until it must wait or ends.
            while let isLeaving = try await reader.handleBatches({ frames -> Bool? in
                let outcome = self.driver.received(frames, from: stream.peer)
                let isFull = self.carryOutNow(outcome)
                // Its remaining frames are not worth the time.
                return outcome.peersToLeave.contains(stream.peer) ? true : isFull ? false : nil
            }) {
                await inbox.waitForRoom()
                if isLeaving { return }
            }
        }
    }
}
