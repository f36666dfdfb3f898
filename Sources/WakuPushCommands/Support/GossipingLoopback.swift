import LoopbackRelay
import Waku
import WakuP2P

/// The network in this process, open to other nodes: what comes by gossip reaches all who are on it by REST, and the other way round.
///
/// Nothing goes in circles: gossip knows what it brought, and the network does not give back to a participant what it has from it.
struct GossipingLoopback: Relay {
    /// The node's own.
    let relay: LoopbackParticipant
    /// Stands for the other nodes.
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
                    // With nobody there it went nowhere, which is as it should be.
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

    /// To the other nodes at once, so that it goes out while nothing is taken in any more, too.
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
    var peers: [RelayPeer] { gossip.peers }
    var traffic: RelayTraffic { gossip.traffic }
    var ownAddresses: [String] { gossip.ownAddresses }
    func close() async { await gossip.close() }
}
