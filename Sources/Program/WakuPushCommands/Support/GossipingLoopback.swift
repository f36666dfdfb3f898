import LoopbackRelay
import Core
import Waku
import WakuP2P

/// The loopback network, connected to other nodes by gossipsub: messages from gossip reach its REST clients, and the other way round.
///
/// Messages do not loop: gossipsub recognises messages that it delivered, and the network does not return a message to its publisher.
struct GossipingLoopback: Relay {
    /// The node's participant in the network.
    let relay: LoopbackParticipant
    /// Represents the other nodes in the network.
    let participant: LoopbackParticipant
    let gossip: P2PRelay

    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        await withDiscardingTaskGroup { group in
            group.addTask { await relay.run(deliver: deliver) }
            group.addTask { await carry() }
        }
    }

    private func carry() async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                await participant.run { messages in
                    // Without peers publishing fails, which is expected.
                    for message in messages { _ = try? await gossip.publish(message.message, on: message.pubsubTopic) }
                }
            }
            group.addTask {
                await gossip.run { messages in
                    for message in messages { _ = try? await participant.publish(message.message, on: message.pubsubTopic) }
                }
            }
        }
    }

    /// Publishes to the other nodes directly, because messages must also go out during shutdown, when `run` has ended.
    @discardableResult
    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let publication = try await relay.publish(message, on: pubsubTopic)
        _ = try? await gossip.publish(message, on: pubsubTopic)
        return publication
    }

    func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> { try await relay.lookUp(hashes) }
    var name: String { relay.name }
    var state: RelayState { relay.state }
    var seenUntil: [PubsubTopic: Timestamp] { relay.seenUntil }
    func watch(_ contentTopics: [ContentTopic]) { relay.watch(contentTopics) }
    func unwatch(_ contentTopics: [ContentTopic]) { relay.unwatch(contentTopics) }
    var peers: [RelayPeer] { gossip.peers }
    var traffic: RelayTraffic { gossip.traffic }
    var ownAddresses: [String] { gossip.ownAddresses }
    func close() async { await gossip.close() }
}
