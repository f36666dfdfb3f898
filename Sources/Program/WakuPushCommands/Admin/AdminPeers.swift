import PushNode
import ArgumentParser
import Waku

extension Admin {
    struct Peers: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the peers that the running node is connected to over libp2p.",
            discussion: """
                BY is the side that opened the connection. MESH is the number of topics whose mesh the peer is in, or filter if it is a \
                filter node that accepted this node's topics. A peer in no mesh sends the messages of others late, and not all of them: its own \
                mesh may be full. SCORE is its gossipsub score: below 0 it is in no mesh, far below it is disconnected. IN and OUT count since the connection. --json adds protocols and topics.

                EXAMPLE
                  waku-push admin peers --data data
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        func execute() async throws {
            let found: AdminAPI.Peers = try await client().get("/peers")
            if admin.json { return try Output.json(found) }
            for address in found.addresses { Output.line("listening on \(address)") }
            guard !found.peers.isEmpty else { return Output.line("no peers") }
            if !found.addresses.isEmpty { Output.line() }
            Output.table(
                ["PEER", "BY", "MESH", "SCORE", "KIB IN", "KIB OUT", "MESSAGES IN", "MESSAGES OUT", "AGENT", "ADDRESS"],
                found.peers.map(Self.row))
        }

        private static func row(_ peer: RelayPeer) -> [String] {
            [
                peer.id, peer.isInbound ? "it" : "us", peer.isFilterNode ? "filter" : String(peer.meshes.count),
                peer.score.map { String(($0 * 10).rounded() / 10) } ?? "–", String(peer.bytesReceived / 1024),
                String(peer.bytesSent / 1024), String(peer.messagesReceived), String(peer.messagesSent),
                // The agent string is chosen by the peer.
                peer.agent ?? "–", peer.address ?? "–",
            ]
        }
    }
}
