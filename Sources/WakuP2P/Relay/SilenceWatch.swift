import Primitives
import LibP2P

/// After how long without gossip from a peer something is done.
public struct SilenceLimits: Hashable, Sendable {
    /// It is asked whether it is there: a network may be quiet.
    public var probe = Duration.seconds(60)
    /// It is left though it answers, and dialled anew: it may have forgotten that this node listens. Only those that this node dialled.
    public var leave = Duration.seconds(600)

    public init() {}
}

/// Decides which peers are asked whether they are there, and which are left. When they were heard goes in, what to do comes out.
///
///     heard ──(silent for the one time)──▶ probed ──(again)──▶ probed … ──(silent for the other)──▶ left
///       ▲                                    │
///       └──────────────(heard)───────────────┘
struct SilenceWatch {
    struct Heard {
        let peer: PeerID
        let at: Instant
        /// Whether this node dialled it.
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
