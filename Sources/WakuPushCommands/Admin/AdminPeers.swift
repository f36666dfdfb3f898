import AdminProtocol
import ArgumentParser
import PushNode
import Waku

extension Admin {
    struct Peers: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "The nodes that the running node is connected to over libp2p.",
            discussion: """
                MESH says on how many topics messages are exchanged with it, or filter, when it took this node's topics; SCORE what is thought of it: below 0 it is in no mesh, far below it is \
                left. IN and OUT are since it connected. --json has the protocols and topics, too.

                EXAMPLE
                  waku-push admin peers --data data
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        func run() async throws {
            try await reportingFailures {
                let found: AdminAPI.Peers = try await AdminClient(folder: admin.folder(of: command)).get("/peers")
                if admin.json { return try Output.json(found) }
                for address in found.addresses { Output.line("listening on \(address)") }
                guard !found.peers.isEmpty else { return Output.line("no peers") }
                if !found.addresses.isEmpty { Output.line() }
                Output.table(
                    ["PEER", "BY", "MESH", "SCORE", "KIB IN", "KIB OUT", "MESSAGES IN", "MESSAGES OUT", "AGENT", "ADDRESS"],
                    found.peers.map(Self.row))
            }
        }

        private static func row(_ peer: RelayPeer) -> [String] {
            [
                peer.id, peer.isInbound ? "it" : "us", peer.isFilterNode ? "filter" : String(peer.meshes.count),
                peer.score.map { String(($0 * 10).rounded() / 10) } ?? "–", String(peer.bytesReceived / 1024),
                String(peer.bytesSent / 1024), String(peer.messagesReceived), String(peer.messagesSent),
                // Peers say of themselves what they like.
                Output.printable(peer.agent ?? "–"), peer.address ?? "–",
            ]
        }
    }
}
