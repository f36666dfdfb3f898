import NIOSupport
import GossipSub
import LibP2P
import Logging
import NIOCore
import Core
import Synchronization
public import Waku

extension P2PRelay {
    /// Connects, and delivers messages until the task is cancelled. Connections stay open afterwards, until ``close()``.
    ///
    /// A later call goes on, and looks up what was missed on ``Configuration/catchUpTopics`` in between. If another call is running, waits for it to end
    /// first: two would take each other's messages.
    public func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        await turn.run {
            await self.receive(deliver)
        } whenTaken: {
            logger.info("relay in use: waiting for the other run to end")
        }
    }

    private func receive(_ deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        lockedState.withLock { state in
            state.start { Task { await self.runConnections() } }
            if inbox.reopen() { state.progress.beginAgain() }
        }
        await withDiscardingTaskGroup { group in
            group.addTask {
                await self.inbox.forEachBatch { batch in
                    let end = Instant.now + self.lockedState.withLock(\.progress.liveWaitLimit)
                    while !Task.isCancelled, Instant.now < end, self.lockedState.withLock({ $0.progress.isBehind(at: .now) }) {
                        try? await Task.sleep(for: .milliseconds(20))
                    }
                    // Not before: a walk meanwhile delivers them in the order of the store.
                    self.lockedState.withLock { $0.noteReceived(batch) }
                    await deliver(batch)
                }
            }
            for index in configuration.pubsubTopics.indices {
                for (store, gaps) in gapNoted[index].enumerated() {
                    group.addTask { await self.catchUp(on: index, from: store, gaps: gaps, deliver: deliver) }
                }
            }
            group.addTask { await self.lookBack(deliver: deliver) }
        }
    }

    /// Sends what was published, for at most 800 ms, then closes all connections and waits until they are closed. The relay cannot be used afterwards.
    public func close() async {
        let task = lockedState.withLock { $0.close() }
        await finishSending()
        task?.cancel()
        await host.close()
        await task?.value
    }

    /// Waits until each peer has received what is queued for it, at most for ``Configuration/closeLimit``: a peer may read slowly, or not at all.
    private func finishSending() async {
        let end = ContinuousClock.now + configuration.closeLimit
        var connections = host.peers.map(\.connection)
        while true {
            // A connection that had nothing left to send stays out: frames queued from now on are gossip of others.
            var sending: [Connection] = []
            for connection in connections where isCurrent(connection) {
                let isQueued = driver.isFrameQueued(to: connection.peer, over: ObjectIdentifier(connection))
                if isQueued { sending.append(connection) } else if await connection.isSending { sending.append(connection) }
            }
            connections = sending
            guard !connections.isEmpty, ContinuousClock.now < end else { return }
            // A task of its own: programs close their relays when they are cancelled.
            await Task { try? await Task.sleep(for: .milliseconds(10)) }.value
        }
    }

    /// Listens, dials, and maintains connections until the relay is closed.
    private func runConnections() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.startListening() }
            group.addTask { await self.handleConnections() }
            group.addTask { await self.runHeartbeat() }
            group.addTask { await self.watchSilence() }
            group.addTask { await self.findPeers() }
            for address in configuration.peers { group.addTask { await self.keepConnected(to: address) } }
        }
    }

    private func runHeartbeat() async {
        while !Task.isCancelled {
            await carryOut(driver.heartbeat())
            rateConnections()
            updateAttachment()
            try? await Task.sleep(for: configuration.gossip.heartbeat)
        }
    }

    /// Carries out the decisions of the gossip driver: disconnects peers and delivers messages. Waits until there is room for more of them.
    func carryOut(_ outcome: GossipDriver.Outcome) async {
        if carryOutNow(outcome) { await inbox.waitForRoom() }
    }

    /// Does the same without waiting.
    ///
    /// - Returns: Whether the caller must wait for room in the inbox.
    func carryOutNow(_ outcome: GossipDriver.Outcome) -> Bool {
        leavePeers(of: outcome)
        if !outcome.held.isEmpty {
            // After the frames that arrived together with this one.
            eventLoop.execute { [held = outcome.held] in self.leavePeers(of: self.driver.forward(held)) }
        }
        if outcome.unwantedCount > 0 { configuration.report(.foreign(outcome.unwantedCount)) }
        return inbox.add(outcome.messages)
    }

    private func leavePeers(of outcome: GossipDriver.Outcome) {
        for (peer, score) in outcome.misbehaving { logMisbehaviour(of: peer, score: score) }
        for peer in outcome.peersToLeave { host.disconnect(peer) }
    }

    /// Called before the peer is disconnected: afterwards nothing shows its address.
    private func logMisbehaviour(of peer: PeerID, score: Double) {
        guard let suppressed = lockedState.withLock({ $0.misbehaviourLog.take(at: .now) }) else { return }
        var metadata: Logger.Metadata = ["peer": "\(peer)", "score": .stringConvertible((score * 10).rounded() / 10)]
        metadata["address"] = host.connection(to: peer)?.remoteAddress.map { "\($0)" }
        if suppressed > 0 { metadata["suppressed"] = .stringConvertible(suppressed) }
        logger.info("peer disconnected: misbehaviour", metadata: metadata)
    }

    /// Reports to the host which connections are useful, for when it must close some.
    private func rateConnections() {
        let standings = driver.statuses.map { gossip in
            (gossip.peer, PeerStanding(isNeeded: !gossip.status.meshes.isEmpty, messageCount: gossip.status.deliveredCount))
        }
        host.rate(Dictionary(standings) { first, _ in first })
    }

    /// Records which topics messages are received on, and starts catching up when messages may have been lost.
    func updateAttachment() {
        let receptions = isFilterClient ? [] : driver.takeReceptions()
        // The filter peers' standing is taken under the same lock, so that concurrent updates are recorded in order.
        let update = lockedState.withLock { $0.updateAttachment(receptions, isInboxEmpty: inbox.isEmpty, at: .now()) }
        for _ in 0..<update.losses.gapCount { configuration.report(.gap) }
        if update.losses.needsCatchUp { for gap in gapNoted.joined() { gap.signal() } }
        if update.needsLookBack { lookBackAdded.signal() }
        switch (update.wasAttached, update.isAttached) {
        case (false, true): logger.info("relay attached", metadata: ["peers": .stringConvertible(workingPeers.count)])
        case (true, false): logger.warning("relay detached", metadata: ["peers": .stringConvertible(workingPeers.count)])
        default: break
        }
    }

    // MARK: Listening

    /// Starts to accept connections now rather than when ``run(deliver:)`` does. No effect when called again.
    ///
    /// - Throws: `RelayError`, with `refused` for an address that cannot be listened on.
    public func listen() async throws(RelayError) {
        guard lockedState.withLock({ $0.startListening() }) else { return }
        for address in configuration.listenAddresses {
            do {
                try await host.listen(on: address)
            } catch {
                throw RelayError(code: .refused, message: "can't listen on \(address): \(ListenFailure.reason(error))")
            }
        }
    }

    private func startListening() async {
        do throws(RelayError) {
            try await listen()
            for address in listenAddresses { logger.info("libp2p listening", metadata: ["address": "\(address)"]) }
        } catch {
            logger.error("failed to listen for libp2p connections", metadata: ["reason": "\(error)"])
        }
    }

    // MARK: Silent peers

    /// Pings peers that have been silent, and disconnects those that do not respond; configured ones are then dialed again.
    private func watchSilence() async {
        var watch = SilenceWatch(limits: configuration.silence)
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                let heard = driver.statuses.map {
                    SilenceWatch.Heard(
                        peer: $0.peer, at: $0.heardAt, isOutbound: $0.isOutbound,
                        lacksSubscription: $0.status.topics.isEmpty && isConfigured($0.peer))
                }
                for action in watch.look(at: heard, now: .now) {
                    switch action {
                    case .report(let peer): logger.warning("peer sent no gossip subscription", metadata: ["peer": "\(peer)"])
                    case .probe(let peer): group.addTask { await self.probe(peer) }
                    case .leave(let peer):
                        logger.info("peer disconnected: no valid messages", metadata: ["peer": "\(peer)"])
                        host.disconnect(peer)
                    }
                }
                for peer in driver.stalledPeers {
                    logger.info("peer disconnected: stalled", metadata: ["peer": "\(peer)"])
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
            // The peer responds, but does not support ping.
        } catch {
            guard !Task.isCancelled, let connection, isCurrent(connection) else { return }
            logger.info("peer disconnected: unresponsive", metadata: ["peer": "\(peer)"])
            host.disconnect(peer)
        }
    }
}
