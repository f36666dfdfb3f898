import LibP2P
import Logging
import Core
import Synchronization
import Waku

extension P2PRelay {
    /// Reads the node lists and dials nodes on them whenever there are fewer working peers than the target.
    func findPeers() async {
        guard !configuration.nodeLists.isEmpty else { return }
        await withDiscardingTaskGroup { group in
            // Nodes are dialed meanwhile: a list with names that nobody answers for takes minutes to read.
            group.addTask { await self.keepReadingLists() }
            while !Task.isCancelled {
                for address in nodesToDial() { group.addTask { await self.tryNode(at: address) } }
                try? await Task.sleep(for: .milliseconds(250))
            }
        }
    }

    private func keepReadingLists() async {
        var sequences: [String: UInt64] = [:]
        while !Task.isCancelled {
            let peerCount = chosenPeerCount
            if lockedState.withLock({ $0.finder.wantsReading(peerCount: peerCount, at: .now) }) { await readLists(&sequences) }
            try? await Task.sleep(for: .seconds(1))
        }
    }

    func nodesToDial() -> [Multiaddr] {
        let (connected, peerCount) = (Set(host.peers.map(\.connection.peer)), chosenPeerCount)
        return lockedState.withLock { $0.finder.toDial(connected: connected, peerCount: peerCount, at: .now) }
    }

    /// Without the peers that dialed this node: strangers must not keep it from choosing others.
    private var chosenPeerCount: Int { isFilterClient ? workingPeers.count : driver.chosenPeers.count }

    private func readLists(_ sequences: inout [String: UInt64]) async {
        var walk = NodeTreeWalk(configuration.nodeLists, minimumSequences: sequences)
        let failure = Mutex<DNSClient.Failure?>(nil)
        let dns = configuration.dns.updated()
        // The failure is logged at the end, which takes 6 s for each server that does not answer.
        let waiting = Task {
            guard (try? await Task.sleep(for: .seconds(3))) != nil, lockedState.withLock({ $0.finder.candidateCount == 0 }) else { return }
            logger.info("waiting for the DNS server")
        }
        defer { waiting.cancel() }
        await walk.run { name in
            do throws(DNSClient.Failure) {
                return try await dns.lookUp(name)
            } catch {
                failure.withLock { $0 = error }
                return []
            }
        } found: {
            noteListed($0, isComplete: false)
        }
        guard !Task.isCancelled else { return }
        if walk.isComplete { noteListed(walk.nodes, isComplete: true) }
        sequences.merge(walk.sequences) { max($0, $1) }
        let metadata: Logger.Metadata = [
            "nodes": .stringConvertible(walk.nodes.count), "unusable": .stringConvertible(walk.failures.count),
        ]
        let problem = NodeListProblem.text(dns: failure.withLock(\.self), list: walk.failures.values)
        if walk.nodes.isEmpty {
            lockedState.withLock { $0.detachedReason = problem }
            logger.warning("no nodes found", metadata: metadata.merging(["reason": "\(problem)"]) { first, _ in first })
        } else {
            logger.info("nodes found", metadata: metadata)
        }
    }

    private func noteListed(_ nodes: [NodeRecord], isComplete: Bool) {
        let shards = configuration.pubsubTopics.compactMap(\.relayShard).map { UInt32($0.shard) }
        let listed = lockedState.withLock { state in
            state.finder.found(nodes, isComplete: isComplete, clusterID: configuration.clusterID, shards: shards)
            return state.finder.listedPeers
        }
        driver.choose(listed.union(configuration.peers.compactMap(\.peerID)))
    }

    /// Dials a node from a list. It is kept if it is a working peer after the trial, or has a store while too few other nodes have one.
    private func tryNode(at address: Multiaddr) async {
        guard let peer = address.peerID else { return }
        var isGood = false
        if let connection = try? await host.connect(to: address) {
            try? await Task.sleep(for: configuration.peerTrial)
            let stores = stores
            isGood = workingPeers.contains(peer) || (stores.contains(peer) && stores.count <= Self.storeTarget)
            if !isGood, !isConfigured(peer), !connection.isInbound, isCurrent(connection) { host.disconnect(peer) }
        }
        lockedState.withLock { $0.finder.dialed(peer, isGood: isGood, at: .now, jitter: .random(in: 0...1)) }
    }

    /// Nodes with a store that are kept although they send no messages: the stores of a fleet may not be its filter nodes.
    private static let storeTarget = 2
}
