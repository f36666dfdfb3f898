/// A peer's answer about its cluster.
enum PeerCluster: Hashable {
    /// nil: the peer answered without a cluster.
    case answered(UInt32?)
    /// The peer did not answer.
    case unknown

    /// Why the peer can't be used; nil if it can.
    func mismatch(with configuration: P2PRelay.Configuration) -> String? {
        let own = configuration.clusterID
        switch self {
        case .answered(own): return nil
        case .answered(let other?): return "a peer is on cluster \(other), this node on cluster \(own)"
        case .answered(nil): return Self.unreported(own)
        case .unknown: return configuration.requiresMetadata ? Self.unreported(own) : nil
        }
    }

    private static func unreported(_ own: UInt32) -> String { "a peer does not report its cluster; this node is on cluster \(own)" }
}
