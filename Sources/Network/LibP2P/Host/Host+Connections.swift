import Core
import Logging
import NIOCore
import Synchronization

/// Called by connections on their event loops.
extension Host: ConnectionOwner {
    func opened(_ connection: Connection) -> ConnectionError? {
        var evicted: ObjectIdentifier?
        var refusedBlock: AddressRange??
        let (decision, replaced) = state.withLock { state -> (ConnectionError?, Connection?) in
            guard !state.isClosed else { return (.closed, nil) }
            if connection.isInbound {
                // Before another one is evicted for it.
                if let refusal = state.connections.refusal(of: connection.peer, isInbound: true, at: connection.openedAt) {
                    return (refusal, nil)
                }
                switch state.inbound.secured(connection.channelID, as: connection.peer, at: connection.openedAt) {
                case .refused:
                    refusedBlock = .some(state.inbound.block(of: connection.channelID))
                    return (.refused, nil)
                case .kept(let id): evicted = id
                }
            }
            let decision = state.connections.add(
                connection, to: connection.peer, isInbound: connection.isInbound, at: connection.openedAt)
            switch decision {
            case .refuse(let reason): return (reason, nil)
            case .keep(let replaced):
                if replaced != nil {
                    state.forgetInfo(of: connection.peer)
                    state.emit(.disconnected(connection.peer, ConnectionError.replaced))
                }
                state.emit(.connected(connection))
                return (nil, replaced)
            }
        }
        if let refusedBlock { configuration.onRefusal?(refusedBlock) }
        if let evicted { evict(evicted, .evicted) }
        replaced?.close(.replaced)
        guard decision == nil else { return decision }
        Task { await identify(connection) }
        return nil
    }

    func closed(_ connection: Connection?, _ reason: any Error) {
        guard let connection else { return }
        let wasKept = state.withLock { state in
            guard state.connections.remove(connection.peer, where: { $0 === connection }) else { return false }
            state.forgetInfo(of: connection.peer)
            state.emit(.disconnected(connection.peer, reason))
            return true
        }
        if wasKept { logger.debug("peer disconnected", metadata: ["peer": "\(connection.peer)", "reason": "\(reason)"]) }
    }

    /// Closes an inbound connection in any phase.
    private func evict(_ id: ObjectIdentifier, _ reason: ConnectionError) {
        let (connection, channel, block) = state.withLock { state in
            (state.connections.entries.values.first { $0.link.channelID == id }?.link, state.channels[id], state.inbound.block(of: id))
        }
        configuration.onRefusal?(block)
        if let connection { connection.close(reason) } else { channel?.close(promise: nil) }
    }

    /// Changes the memory of data that waits for several peers. It counts towards ``HostConfiguration/inboundMemoryLimit``.
    package func charge(_ byteCount: Int) {
        if shared.add(byteCount) { group.any().execute { self.relieveMemory() } }
    }

    /// Sets what is called before connections are closed for their memory: it frees as much as it can of what was charged by ``charge(_:)``, with the
    /// number of bytes to free and the limit, and returns how much waits for each peer then. It is called on event loops and must not block.
    package func freeMemory(_ body: @escaping @Sendable (_ byteCount: Int, _ limit: Int) -> [PeerID: Int]) {
        state.withLock { $0.freeMemory = body }
    }

    func relieveMemory() {
        let excess = memory.byteCount - memory.limit
        guard excess > 0 else { return }
        let waiting = state.withLock(\.freeMemory)?(excess, memory.limit) ?? [:]
        let evicted = state.withLock { state in
            let connections = state.connections.entries
            return state.inbound.exceeding(memory.limit, shared: shared.byteCount, waiting: waiting, at: .now()) {
                connections[$0]?.link.memory.byteCount ?? 0
            }
        }
        for id in evicted { evict(id, .tooMuchMemory) }
        if !evicted.isEmpty {
            logger.info("peers disconnected: memory limit exceeded", metadata: ["peers": .stringConvertible(evicted.count)])
        }
    }

    func isServed(_ protocolID: String) -> Bool {
        state.withLock { $0.services[protocolID] != nil }
    }

    func start(_ stream: PeerStream) -> Task<Void, Never>? {
        let start = state.withLock { state -> (service: Service, served: State.ServedStream)? in
            guard let entry = state.services[stream.protocolID] else { return nil }
            let served = State.ServedStream(peer: stream.peer, service: entry.name)
            guard state.servedStreams[served, default: 0] < entry.streamLimit else { return nil }
            state.servedStreams[served, default: 0] += 1
            return (entry.service, served)
        }
        guard let (service, served) = start else { return nil }
        return Task(executorPreference: stream.connection.executor) { [self] in
            do {
                try await service(stream)
                stream.close()
            } catch {
                stream.reset()
            }
            state.withLock { state in
                let rest = state.servedStreams[served, default: 1] - 1
                state.servedStreams[served] = rest > 0 ? rest : nil
            }
        }
    }

    // MARK: Identify

    private func identify(_ connection: Connection) async {
        do {
            identified(connection, try await Identify.request(connection))
        } catch {
            let isOpen = state.withLock { state in
                guard state.connections.entries[connection.peer]?.link === connection else { return false }
                state.emit(.notIdentified(connection.peer, error))
                return true
            }
            // Peers that dial this node could accumulate timers.
            guard isOpen, !connection.isInbound, !(error is MultistreamError) else { return }
            Task { [weak self, weak connection, pause = configuration.identifyPause] in
                try? await Task.sleep(for: pause)
                if let self, let connection { await self.identify(connection) }
            }
        }
    }

    func identified(_ connection: Connection, _ info: PeerInfo) {
        state.withLock { state in
            guard state.connections.entries[connection.peer]?.link === connection, state.infos[connection.peer] != info else { return }
            state.infos[connection.peer] = info
            let charge = state.infoCharges[connection.peer] ?? MemoryCharge(connection)
            charge.set(info.byteCount)
            state.infoCharges[connection.peer] = charge
            state.emit(.identified(connection.peer, info))
        }
    }

    var ownInfo: PeerInfo {
        var info = PeerInfo()
        info.publicKey = key.publicKey
        info.protocolVersion = configuration.protocolVersion
        info.agentVersion = configuration.agentVersion
        state.withLock { state in
            info.protocols = state.services.keys.sorted()
            info.listenAddresses =
                configuration.advertisedAddresses.isEmpty ? state.listeners.map(\.address) : configuration.advertisedAddresses
        }
        return info
    }

    /// Sends an identify push to all peers after a short delay, so that several changes are sent together.
    func pushInfo() {
        let isNeeded = state.withLock { state in
            guard !state.isPushPending, !state.connections.entries.isEmpty else { return false }
            state.isPushPending = true
            return true
        }
        guard isNeeded else { return }
        Task {
            try? await Task.sleep(for: .milliseconds(50))
            state.withLock { $0.isPushPending = false }
            pushNow()
        }
    }

    private func pushNow() {
        let peers = state.withLock { state in
            // Include peers that were not identified yet: they may have requested this node's info before the change.
            state.connections.entries.filter { state.infos[$0.key]?.protocols.contains(Identify.pushID) ?? true }.map(\.value.link)
        }
        guard !peers.isEmpty else { return }
        let info = ownInfo
        for connection in peers {
            Task {
                // Errors are ignored: the peer requests the info again when it reconnects.
                guard let stream = try? await connection.openStream([Identify.pushID], within: Identify.limit) else { return }
                try? await Identify.send(info, on: stream)
                stream.close()
            }
        }
    }
}
