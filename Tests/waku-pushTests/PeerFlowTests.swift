import CurlClient
import Foundation
import LibP2P
import TestSupport
import Testing

/// The daemon's whole job over libp2p, between processes.
@Suite(.timeLimit(.minutes(5)))
struct PeerFlowTests {
    private let node: OperatedNode

    init() throws {
        node = try OperatedNode()
    }

    private func client(_ relay: String, _ command: String, _ arguments: String...) async throws -> Ended {
        try await node.recorded(["client", command, "--relay", relay, "--server", node.server.publicKey, "--timeout", "60s"] + arguments)
    }

    /// Registers, asks and notifies, attached to `relay`.
    private func wholeJob(by relay: String) async throws {
        let registered = try await client(
            relay, "register", "--identity", node.bob.path, "--device-token", OperatedNode.deviceToken, "--access-token",
            OperatedNode.accessToken, "--apn-topic", "im.status.ethereum", "--installation", "bobs-phone")
        #expect(registered.status == 0, "\(registered.errors)")
        let queried = try await client(relay, "query", "--registrant", node.bob.publicKey)
        #expect(queried.rows.last == ["bobs-phone", "1", "yes"], "\(queried.errors)")
        try await wait {
            let notified = try await client(relay, "notify", "--registrant", node.bob.publicKey, "--message-id", "c0ffee")
            // On a slow machine the first answer may be that gorush needs longer than the node waits.
            return notified.status == 0 || !notified.output.contains("INTERNAL_ERROR")
        }
        let bodies = node.gorush.requests.filter { $0.head.hasPrefix("POST") }.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies.count == 1)
        #expect(bodies.first?.contains(#""tokens":["\#(OperatedNode.deviceToken)"]"#) == true)
        #expect(node.leaks.isEmpty)
    }

    @Test func clientsDialTheNode() async throws {
        let daemon = try await node.start()
        let address = try await daemon.multiaddr()
        try await wholeJob(by: address)
        // What one does by gossip another sees by REST.
        #expect(try await node.query(daemon).rows.last == ["bobs-phone", "1", "yes"])
        #expect(await daemon.stop().status == 0)
    }

    @Test func theNodeDialsAnother() async throws {
        let folder = try TemporaryFolder()
        let hub = try await Daemon.start(["--identity", try KeyFile(in: folder, "hub.key").path, "--data", folder.path + "/hub"])
        let address = try await hub.multiaddr()
        let daemon = try await node.start("--relay", address)
        try await wholeJob(by: address)
        // By REST at the other, from there by gossip.
        #expect(try await client(hub.relayURL, "query", "--registrant", node.bob.publicKey).rows.last == ["bobs-phone", "1", "yes"])
        #expect(await daemon.stop().status == 0)
        #expect(await hub.stop().status == 0)
    }

    /// Each message comes twice, and is handled once.
    @Test func besideREST() async throws {
        let folder = try TemporaryFolder()
        let hub = try await Daemon.start(["--identity", try KeyFile(in: folder, "hub.key").path, "--data", folder.path + "/hub"])
        let daemon = try await node.start("--relay", hub.relayURL, "--relay", try await hub.multiaddr())
        try await wholeJob(by: hub.relayURL)
        #expect(await daemon.stop().status == 0)
        #expect(await hub.stop().status == 0)
    }

    @Test func theNodeKeepsItsKey() async throws {
        var addresses: [String] = []
        for _ in 0..<2 {
            let daemon = try await node.start()
            addresses.append(try await daemon.multiaddr())
            #expect(await daemon.stop().status == 0)
        }
        let peers = try addresses.map { try Multiaddr($0).peerID }
        #expect(peers[0] == peers[1] && peers[0] != NodeKey(node.server.key).peerID)
        let attributes = try FileManager.default.attributesOfItem(atPath: node.data + "/node.key")
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
}
