extension MetricGroup {
    /// The relay and its peers.
    package static let relay = MetricGroup(
        metrics: [
            .relayAttached, .relaysDetached, .relaysDemoted, .relayLastMessage, .relaySeenUntil, .relayGaps, .relayRecovered, .relayPeers,
            .relayMeshPeers, .relayBytes, .relayGossip, .relayMisbehaviour, .relayRefused,
        ],
        counters: [.gapFound, .messageRecovered, .connectionRefused])
}

extension Metric {
    package static let relayAttached = Metric(
        "waku_push_relay_attached", help: "1 while the relay is attached, so that messages can be received.")
    package static let relaysDetached = Metric(
        "waku_push_relays_detached",
        help: "Relays that are not attached, peers of --relay that are not connected, and pubsub topics without peers, while others work.")
    package static let relaysDemoted = Metric(
        "waku_push_relays_demoted",
        help: "Relays that publish last, because other relays' stores had none of the answers that they published.")
    package static let relayLastMessage = Metric(
        "waku_push_relay_last_message_timestamp_seconds",
        help: "When the last message was received, from anyone; before the first, when the node started.")
    package static let relaySeenUntil = Metric(
        "waku_push_relay_seen_until_timestamp_seconds",
        help: "Time up to which no message is missing, on the pubsub topic that is furthest behind.")
    package static let relayGaps = Metric(
        "waku_push_relay_gaps_total", help: "How often messages may have been lost between the relay and this node.")
    package static let relayRecovered = Metric(
        "waku_push_relay_messages_recovered_total", help: "Messages that were found only in the relay's store.")
    package static let relayPeers = Metric(
        "waku_push_relay_peers", DirectionLabel.self, help: "libp2p peers, by the side that dialled.")
    package static let relayMeshPeers = Metric(
        "waku_push_relay_mesh_peers",
        help: "Peers in a mesh, or filter nodes that accepted this node's topics: with none, messages are late, and some are missed.")
    package static let relayBytes = Metric(
        "waku_push_relay_peer_bytes_total", FlowLabel.self, help: "Bytes received from and sent to peers.")
    package static let relayGossip = Metric(
        "waku_push_relay_gossip_messages_total", GossipLabel.self,
        help: "Messages in gossipsub, by result; forwarded counts copies.")
    package static let relayMisbehaviour = Metric(
        "waku_push_relay_misbehaviour_total", MisbehaviourLabel.self,
        help: "Misbehaviour of peers that lowers their score, besides invalid messages.")
    package static let relayRefused = Metric(
        "waku_push_relay_connections_refused_total",
        help: "Connections of peers that were refused, or closed in favor of others: too many in all, or of one network.")
}

extension Counter {
    package static let gapFound = Counter("gap: messages may have been lost on a pubsub topic", .relayGaps)
    package static let connectionRefused = Counter("peer's connection refused", .relayRefused)
    package static let messageRecovered = Counter("message that came from the store alone", .relayRecovered)
}

/// The side that dialled.
package enum DirectionLabel: String, MetricLabel {
    package static let labelName = "direction"
    case inbound, outbound
}

package enum FlowLabel: String, MetricLabel {
    package static let labelName = "direction"
    case received, sent
}

/// The result of a message in gossipsub.
package enum GossipLabel: String, MetricLabel {
    package static let labelName = "result"
    case accepted, ignored, rejected, duplicate, foreign, overloaded, published, forwarded
}

package enum MisbehaviourLabel: String, MetricLabel {
    package static let labelName = "kind"
    case brokenPromise = "broken_promise"
    case graftFlood = "graft_flood"
    case graylisted = "grey_listed"
}
