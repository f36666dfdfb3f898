/// The state of a relay for operators: for logs, metrics, alarms and the status page.
public protocol RelayDiagnostics: Sendable {
    /// Names the relay, for example by the address of its node.
    var name: String { get }

    /// The relays that lost their rank because none of their publications was confirmed, by name. See ``RelayRanking``.
    var demotedRelays: [String] { get }

    /// The names of those of several relays, configured peers and pubsub topics without messages at present, although the relay may be attached.
    var detachedRelays: [String] { get }

    /// The peers it is connected to, where it has peers.
    var peers: [RelayPeer] { get }

    /// The minimum difference between the Waku node's clock and this machine's, positive when the node's is ahead; nil when it is not known.
    var clockAhead: Duration? { get }

    /// Totals since the relay was created.
    var traffic: RelayTraffic { get }

    /// The addresses at which peers can dial it, with its peer id.
    var ownAddresses: [String] { get }
}

/// Defaults for a relay without peers.
extension RelayDiagnostics {
    /// A name for a relay that has no address.
    public var name: String { "relay" }
    /// Empty: a single relay has no rank to lose.
    public var demotedRelays: [String] { [] }
    /// Empty: the state of a single relay is its ``RelayTransport/state``.
    public var detachedRelays: [String] { [] }
    /// Empty: the relay has no peers.
    public var peers: [RelayPeer] { [] }
    /// nil: the clock of the relay's node is not known.
    public var clockAhead: Duration? { nil }
    /// All totals are 0.
    public var traffic: RelayTraffic { RelayTraffic() }
    /// Empty: the relay cannot be dialed.
    public var ownAddresses: [String] { [] }
}
