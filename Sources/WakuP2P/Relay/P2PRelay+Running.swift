import Primitives
import GossipSub
import LibP2P
import Logging
import NIOCore
import Synchronization
public import Waku

extension P2PRelay {
    /// Once. Its connections stay when it ends, until ``close()``.
    public func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        begin()
        await withDiscardingTaskGroup { group in
            group.addTask {
                await self.inbox.forEachBatch { batch in
                    self.progress.withLock { $0.brought(batch) }
                    if self.isFilterClient { self.lookBack.withLock { $0.brought(batch) } }
                    await deliver(batch)
                }
            }
            for index in configuration.pubsubTopics.indices {
                group.addTask { await self.catchUp(on: index, deliver: deliver) }
            }
            if isFilterClient { group.addTask { await self.lookBack(deliver: deliver) } }
        }
    }

    public func close() async {
        let task = life.withLock { life in
            life.isClosed = true
            return life.task
        }
        task?.cancel()
        await host.close()
        await task?.value
    }

    private func begin() {
        life.withLock { life in
            guard life.task == nil, !life.isClosed else { return }
            life.task = Task { await self.live() }
        }
    }

    private func live() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.listenAtLast() }
            group.addTask { await self.followPeers() }
            group.addTask { await self.beat() }
            group.addTask { await self.watchSilence() }
            group.addTask { await self.findPeers() }
            for address in configuration.peers { group.addTask { await self.keep(address) } }
        }
    }

    private func beat() async {
        while !Task.isCancelled {
            await finish(router.heartbeat())
            rateConnections()
            noteListening()
            try? await Task.sleep(for: configuration.gossip.heartbeat)
        }
    }

    /// Tells the host which connections are of use, for when it must close some.
    private func rateConnections() {
        let standings = router.statuses.map { gossip in
            (gossip.peer, PeerStanding(isNeeded: !gossip.status.meshes.isEmpty, messageCount: gossip.status.deliveredCount))
        }
        host.rate(Dictionary(standings) { first, _ in first })
    }

    /// Notes who is there, and has a store asked for what may be lost.
    func noteListening() {
        let hasPeers = isFilterClient ? [] : router.hasPeers(on: configuration.pubsubTopics)
        let (wasAttached, isAttached, gapCount, isUncertain) = progress.withLock { progress in
            let wasAttached = progress.isAttached
            guard isFilterClient else {
                let gapCount = progress.note(hasPeers: hasPeers, isHandedOver: inbox.isEmpty, at: .now())
                return (wasAttached, progress.isAttached, gapCount, false)
            }
            // Taken in here, so that of two tasks none notes what the other has overtaken.
            let standing = filterPeers.withLock { $0.takeStanding() }
            let gapCount = progress.note(standing, isHandedOver: inbox.isEmpty, at: .now())
            return (wasAttached, progress.isAttached, gapCount, standing.uncertainFrom != nil)
        }
        for _ in 0..<gapCount { configuration.report(.gap) }
        if gapCount > 0 || isUncertain { for gap in gaps { gap.signal() } }
        log(wasAttached: wasAttached, isAttached: isAttached)
    }

    private func log(wasAttached: Bool, isAttached: Bool) {
        switch (wasAttached, isAttached) {
        case (false, true): logger.info("relay attached", metadata: ["peers": "\(workingPeers.count)"])
        case (true, false):
            reason.withLock { $0 = isFilterClient ? "no filter node takes this node's topics" : "no peer gossips on a topic of this node" }
            logger.warning("relay detached", metadata: ["peers": "\(workingPeers.count)"])
        default: break
        }
    }

    // MARK: Connections

    /// Takes connections from now on, rather than from when it runs.
    ///
    /// - Throws: `RelayError`, with `refused` for an address that can't be listened on.
    public func listen() async throws(RelayError) {
        let isFirst = life.withLock { life in
            defer { life.isListening = true }
            return !life.isListening
        }
        guard isFirst else { return }
        for address in configuration.listenAddresses {
            do {
                try await host.listen(on: address)
            } catch {
                throw RelayError(code: .refused, message: "\(address) can't be listened on: is another program using it?")
            }
        }
    }

    private func listenAtLast() async {
        do throws(RelayError) {
            try await listen()
            for address in listenAddresses { logger.info("libp2p listening", metadata: ["address": "\(address)"]) }
        } catch {
            logger.error("libp2p not listening", metadata: ["reason": "\(error)"])
        }
    }

    /// Keeps a connection to one peer.
    private func keep(_ address: Multiaddr) async {
        let backoff = ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(30))
        var failures = 0
        while !Task.isCancelled {
            do {
                let began = ContinuousClock.now
                let connection = try await host.connect(to: address)
                while !Task.isCancelled, host.connection(to: connection.peer) != nil { try await Task.sleep(for: .milliseconds(250)) }
                // One that is lost at once is a failure like any other.
                failures = ContinuousClock.now - began > .seconds(10) ? 1 : failures + 1
            } catch {
                failures += 1
                guard !Task.isCancelled else { return }
                if failures == 1 { logger.warning("peer can't be reached", metadata: ["address": "\(address)", "reason": "\(error)"]) }
                reason.withLock { $0 = "the peers can't be reached" }
            }
            try? await Task.sleep(for: backoff.delay(afterFailures: failures, jitter: .random(in: 0...1)))
        }
    }

    /// A peer of which nothing is heard is asked whether it is there, and left when it is not: then it is dialled anew.
    private func watchSilence() async {
        var watch = SilenceWatch(limits: configuration.silence)
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                let heard = router.statuses.map { SilenceWatch.Heard(peer: $0.peer, at: $0.heardAt, isOutbound: $0.status.isOutbound) }
                for action in watch.look(at: heard, now: Instant.now) {
                    switch action {
                    case .probe(let peer): group.addTask { await self.probe(peer) }
                    case .leave(let peer):
                        logger.info("silent peer left", metadata: ["peer": "\(peer)"])
                        host.disconnect(peer)
                    }
                }
                for peer in router.peersThatTakeNothing {
                    logger.info("peer that takes nothing left", metadata: ["peer": "\(peer)"])
                    host.disconnect(peer)
                }
                try? await Task.sleep(for: configuration.silence.probe / 10)
            }
        }
    }

    private func probe(_ peer: PeerID) async {
        let connection = host.connection(to: peer)
        do {
            _ = try await host.ping(peer)
        } catch is MultistreamError {
            // It answers, though not to that.
        } catch {
            guard !Task.isCancelled, let connection, isCurrent(connection) else { return }
            logger.info("peer that does not answer left", metadata: ["peer": "\(peer)"])
            host.disconnect(peer)
        }
    }

    private func followPeers() async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                // It ends when this lags behind; then it begins anew with those who are there.
                for await event in host.events() {
                    switch event {
                    case .connected(let connection): group.addTask { await self.talk(over: connection) }
                    case .disconnected(let peer, _):
                        router.disconnected(peer, current: host.connection(to: peer).map { ObjectIdentifier($0) })
                    case .identified, .notIdentified: break
                    }
                }
                guard !Task.isCancelled else { return }
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    // MARK: A peer

    /// Asks who it is, then gossips until it is gone.
    private func talk(over connection: Connection) async {
        let peer = connection.peer
        let isOfThisCluster = await isOfThisCluster(peer)
        // What became of a connection that is gone says nothing of its successor, over which there is another talk.
        guard isCurrent(connection) else { return }
        guard isOfThisCluster else {
            logger.info("peer left: it is of another cluster, or does not say", metadata: ["peer": "\(peer)"])
            return host.disconnect(peer)
        }
        while !Task.isCancelled, isCurrent(connection) {
            do {
                return try await isFilterClient ? filter(over: connection) : gossip(over: connection)
            } catch is MultistreamError {
                // It may have a store all the same. One that is to be a peer may be starting.
                logger.debug("peer does not speak the protocol", metadata: ["peer": "\(peer)"])
                reason.withLock { $0 = isFilterClient ? "a peer is no filter node" : "a peer does not gossip" }
                guard isTold(of: peer) else { return }
                try? await Task.sleep(for: Self.protocolPatience)
            } catch {
                // Gossip that ended can't be taken up again in the middle: a new connection begins with the subscriptions.
                if isCurrent(connection) { host.disconnect(peer) }
                return
            }
        }
    }

    private static let protocolPatience = Duration.seconds(30)

    private func gossip(over connection: Connection) async throws {
        let peer = connection.peer
        let stream = try await host.openStream(to: peer, Self.gossipProtocols)
        defer { stream.close() }
        guard stream.connection === connection else { return }
        let version = GossipVersion(protocolID: stream.protocolID) ?? .v11
        let life = ObjectIdentifier(connection)
        let (framesQueued, outcome) = router.connected(peer, over: life, version: version, isOutbound: !connection.isInbound) {
            isCurrent(connection)
        }
        await finish(outcome)
        try await withThrowingTaskGroup { group in
            group.addTask {
                while let frame = self.router.nextFrame(to: peer, over: life) { try await stream.write(frame) }
                for await _ in framesQueued {
                    while let frame = self.router.nextFrame(to: peer, over: life) { try await stream.write(frame) }
                }
            }
            // Nothing comes back on it but its end: a peer that ended it hears no more of this node.
            group.addTask {
                while try await stream.read() != nil {}
                throw ConnectionError.closedByPeer
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    func isCurrent(_ connection: Connection) -> Bool { host.connection(to: connection.peer) === connection }

    private func isOfThisCluster(_ peer: PeerID) async -> Bool {
        do {
            let answer = try await ask(ownMetadata.encoded(), of: peer, WakuProtocol.metadata, WakuMetadata.init(parsing:))
            return answer.clusterID == configuration.clusterID
        } catch {
            return !configuration.requiresMetadata
        }
    }

    private var ownMetadata: WakuMetadata {
        WakuMetadata(
            clusterID: configuration.clusterID, shards: configuration.pubsubTopics.compactMap(\.relayShard).map { UInt32($0.shard) })
    }

    private static let gossipProtocols = [WakuProtocol.relay, "/meshsub/1.2.0", "/meshsub/1.1.0"]

    /// What others may ask of this node.
    func serve() {
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
            let (_, outcome) = router.connected(
                stream.peer, over: ObjectIdentifier(stream.connection), version: version, isOutbound: !stream.connection.isInbound
            ) { self.isCurrent(stream.connection) }
            await finish(outcome)
            for try await frames in stream.messages(limit: GossipRPC.maximumByteCount) {
                await finish(router.received(frames, from: stream.peer))
            }
        }
    }
}
