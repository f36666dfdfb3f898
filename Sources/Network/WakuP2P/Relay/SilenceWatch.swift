import Core
import LibP2P

/// When peers that send no gossip are pinged and disconnected.
public struct SilenceLimits: Hashable, Sendable {
    /// A peer that was silent for this long is pinged: the network may just be quiet.
    public var probe = Duration.seconds(60)
    /// A peer that was silent for this long is disconnected and dialed again even if it responds, since it may have lost this node's subscriptions.
    /// Only for peers that this node dialed.
    public var leave = Duration.seconds(600)

    /// A ping after a minute, and disconnection after ten.
    public init() {}
}

/// Decides which peers to ping and which to disconnect, from the times at which they were last heard.
///
///     heard ──(silent for `probe`)──▶ probed ──(again)──▶ probed … ──(silent for `leave`)──▶ left
///       ▲                               │
///       └────────────(heard)────────────┘
struct SilenceWatch {
    struct Heard {
        let peer: PeerID
        let at: Instant
        /// Whether this node dialed the peer.
        let isOutbound: Bool
    }

    enum Action: Hashable {
        case probe(PeerID)
        case leave(PeerID)
    }

    let limits: SilenceLimits
    private var probed: [PeerID: Instant] = [:]

    init(limits: SilenceLimits) {
        self.limits = limits
    }

    mutating func look(at peers: [Heard], now: Instant) -> [Action] {
        var actions: [Action] = []
        var stillProbed: [PeerID: Instant] = [:]
        for heard in peers {
            let last = max(heard.at, probed[heard.peer] ?? heard.at)
            if heard.isOutbound, now - heard.at >= limits.leave {
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
