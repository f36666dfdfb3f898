import Primitives
import LibP2P
import Logging
import Synchronization
import Waku

extension P2PRelay {
    /// Reads the lists of nodes, dials those that are on them until enough bring messages, and again when there are not.
    func findPeers() async {
        guard !configuration.nodeLists.isEmpty else { return }
        var sequences: [String: UInt64] = [:]
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                let peerCount = workingPeers.count
                if finder.withLock({ $0.wantsReading(peerCount: peerCount, at: Instant.now) }) {
                    await readLists(&sequences)
                }
                for address in nodesToDial() { group.addTask { await self.dial(address) } }
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    func nodesToDial() -> [Multiaddr] {
        let (connected, peerCount) = (Set(host.peers.map(\.connection.peer)), workingPeers.count)
        return finder.withLock { $0.toDial(connected: connected, peerCount: peerCount, at: Instant.now) }
    }

    private func readLists(_ sequences: inout [String: UInt64]) async {
        var walk = NodeTreeWalk(configuration.nodeLists, minimumSequences: sequences)
        await walk.run { await configuration.dns.texts(of: $0) }
        sequences.merge(walk.sequences) { max($0, $1) }
        let shards = configuration.pubsubTopics.compactMap(\.relayShard).map { UInt32($0.shard) }
        finder.withLock { $0.found(walk.nodes, clusterID: configuration.clusterID, shards: shards) }
        let metadata: Logger.Metadata = ["nodes": "\(walk.nodes.count)", "unusable": "\(walk.failures.count)"]
        if walk.nodes.isEmpty {
            reason.withLock { $0 = "the lists of nodes can't be read: does the DNS work here?" }
            logger.warning("no nodes found", metadata: metadata)
        } else {
            logger.info("nodes found", metadata: metadata)
        }
    }

    /// Good is who brings messages after a trial, or has a store while others have none; the rest makes room for those that may.
    private func dial(_ address: Multiaddr) async {
        guard let peer = address.peerID else { return }
        var isGood = false
        if let connection = try? await host.connect(to: address) {
            try? await Task.sleep(for: configuration.peerTrial)
            let stores = stores
            isGood = workingPeers.contains(peer) || (stores.contains(peer) && stores.count <= Self.storeTarget)
            if !isGood, !isTold(of: peer), !connection.isInbound, isCurrent(connection) { host.disconnect(peer) }
        }
        finder.withLock { $0.dialled(peer, isGood: isGood, at: Instant.now, jitter: .random(in: 0...1)) }
    }

    /// So many nodes with a store are kept that do nothing else for this one: a fleet's stores may not be its filter nodes.
    private static let storeTarget = 2

    func isTold(of peer: PeerID) -> Bool { configuration.peers.contains { $0.peerID == peer } }
}
