import Core
import LibP2P

/// When peers that send no gossip are pinged and disconnected.
public struct SilenceLimits: Hashable, Sendable {
    /// A peer that was silent for this long is pinged: the network may just be quiet.
    public var probe = Duration.seconds(60)
    /// A peer that was silent for this long is disconnected and dialed again even if it responds, since it may have lost this node's subscriptions.
    /// Only for peers that this node dialed, one per look.
    public var leave = Duration.seconds(600)
    /// A configured peer that was silent for this long and has subscribed to no topic is reported, and disconnected and dialed again after twice as
    /// long: peers send their subscriptions when they connect, and messages only to peers with subscriptions.
    package var unsubscribed = Duration.seconds(30)

    /// A ping after a minute, and disconnection after ten.
    public init() {}
}

/// Decides which peers to ping and which to disconnect, from the times at which they were last heard.
///
///     heard ──(silent for `probe`)──▶ probed ──(again)──▶ probed … ──(silent for `leave`)──▶ left
///       ▲                               │
///       └────────────(heard)────────────┘
///
/// Configured peers without subscriptions are reported once until they subscribe, and left, over and over.
struct SilenceWatch {
    struct Heard {
        let peer: PeerID
        let at: Instant
        /// Whether this node dialed the peer.
        let isOutbound: Bool
        /// Whether this is a configured peer that has subscribed to no topic since it connected.
        var lacksSubscription = false
    }

    enum Action: Hashable {
        case report(PeerID)
        case probe(PeerID)
        case leave(PeerID)
    }

    let limits: SilenceLimits
    private var probed: [PeerID: Instant] = [:]
    /// Bounded by the configured peers.
    private var reported: Set<PeerID> = []

    init(limits: SilenceLimits) {
        self.limits = limits
    }

    mutating func look(at peers: [Heard], now: Instant) -> [Action] {
        var actions: [Action] = []
        var stillProbed: [PeerID: Instant] = [:]
        // One at a time: on a quiet network all reach the limit together, and the others go on sending while it is dialed again.
        let left = peers.filter { $0.isOutbound && now - $0.at >= limits.leave }.min { $0.at < $1.at }?.peer
        for heard in peers {
            let last = max(heard.at, probed[heard.peer] ?? heard.at)
            if !heard.lacksSubscription {
                reported.remove(heard.peer)
            } else if now - heard.at >= limits.unsubscribed, reported.insert(heard.peer).inserted {
                actions.append(.report(heard.peer))
            }
            let isLeft = heard.lacksSubscription && now - heard.at >= limits.unsubscribed * 2
            if isLeft || heard.peer == left {
                actions.append(.leave(heard.peer))
            } else if now - last >= limits.probe {
                actions.append(.probe(heard.peer))
                stillProbed[heard.peer] = now
            } else if last > heard.at {
                stillProbed[heard.peer] = last
            }
        }
        probed = stillProbed
        return actions
    }
}
