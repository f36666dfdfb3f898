import Foundation
import NIOCore
import NIOPosix
import Core
import TestSupport
import Testing
import WakuCrypto

@testable import LibP2P

/// Tests with py-libp2p 0.8.1, if `LIBP2P_PYTHON` names a Python that has it.
@Suite(.enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python with libp2p 0.8.1"), .serialized) struct InteropTests {
    private func peer(_ arguments: String...) throws -> ChildProcess {
        let script = Repository.file("Tests/Interop/py_libp2p_peer.py").path
        return try ChildProcess([script] + arguments, program: URL(fileURLWithPath: try #require(OtherLibP2P.python)), limit: .seconds(120))
    }

    private func line(_ prefix: String, of process: ChildProcess) async throws -> String {
        var found: String?
        try await eventually {
            found = process.lines.first { $0.hasPrefix(prefix + " ") }.map { String($0.dropFirst(prefix.count + 1)) }
            return found != nil || !process.isRunning
        }
        return try #require(found, "\(process.output)\(process.errors)")
    }

    @Test func weDial() async throws {
        let process = try peer()
        let address = try Multiaddr(try await line("address", of: process))
        let host = Host(key: .generate())
        let connection = try await host.connect(to: address)
        for _ in 0..<3 { #expect(try await host.ping(connection.peer) > .zero) }
        try await eventually { host.peers.first?.info != nil }
        let info = try #require(host.peers.first?.info)
        #expect(info.publicKey.map(PeerID.init) == address.peerID)
        #expect(info.protocols.contains("/echo/1.0.0") && info.protocols.contains("/ipfs/ping/1.0.0"))
        let stream = try await host.openStream(to: connection.peer, ["/none/1.0.0", "/echo/1.0.0"])
        let data = randomBytes(1_000_000)
        async let received: [UInt8] = {
            var received: [UInt8] = []
            while received.count < data.count, let bytes = try await stream.read() { received += Array(buffer: bytes) }
            return received
        }()
        try await stream.write(ByteBuffer(bytes: data))
        #expect(try await received == data)
        stream.close()
        await host.close()
    }

    @Test func theyDial() async throws {
        let listener = try await ListeningHost()
        listener.host.serve("/echo/1.0.0") { stream in
            while let bytes = try await stream.read() { try await stream.write(bytes) }
        }
        let process = try peer(listener.address.description)
        #expect(try await line("pinged", of: process) == "3")
        let identified = try await line("identified", of: process)
        #expect(identified.hasPrefix("waku-push ") && identified.contains("/echo/1.0.0"))
        #expect(try await line("echoed", of: process) == "1048576 True")
        try await eventually { listener.host.peers.first?.info != nil }
        #expect(listener.host.peers.first?.info?.protocols.contains("/ipfs/id/1.0.0") == true)
        #expect(try await listener.host.ping(try #require(listener.host.peers.first).connection.peer) > .zero)
        await listener.host.close()
    }
}

/// Tests with a go-libp2p daemon, if `LIBP2P_P2PD` names one: `p2pd` from the wheel hivemind 1.1.12 on PyPI.
@Suite(.enabled(if: OtherLibP2P.daemon != nil, "LIBP2P_P2PD names no go-libp2p daemon"), .serialized) struct DaemonInteropTests {
    private struct Daemon {
        let daemon: GoLibP2PDaemon
        let address: Multiaddr

        init() async throws {
            daemon = try await GoLibP2PDaemon()
            address = try Multiaddr(daemon.address)
        }

        /// The control protocol, go-libp2p-daemon, specs/CONTROL.md: `{1 type: 1 connect, 2 {1 peer, 2 address*}}` → `{1 type: 0 ok}`.
        func connect(to address: Multiaddr) async throws -> [UInt8] {
            var target = ProtobufWriter()
            target.field(1, try #require(address.peerID).bytes)
            target.field(2, address.withoutPeerID.encoded())
            var request = ProtobufWriter()
            request.field(1, 1 as UInt64)
            request.field(2, target.bytes)
            let delimited = PeerStream.delimited(ByteBuffer(bytes: request.bytes))
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(unixDomainSocketPath: daemon.controlPath) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
            return try await channel.executeThenClose { inbound, outbound in
                try await outbound.write(delimited)
                for try await answer in inbound { return Array(buffer: answer) }
                return []
            }
        }
    }

    @Test func weDial() async throws {
        let daemon = try await Daemon()
        let host = Host(key: .generate())
        let connection = try await host.connect(to: daemon.address)
        for _ in 0..<3 { #expect(try await host.ping(connection.peer) > .zero) }
        try await eventually { host.peers.first?.info != nil }
        let info = try #require(host.peers.first?.info)
        #expect(info.publicKey.map(PeerID.init) == daemon.address.peerID)
        #expect(info.protocols.contains("/ipfs/ping/1.0.0") && info.protocols.contains("/ipfs/id/push/1.0.0"))
        await host.close()
    }

    @Test(arguments: [NodeKey.Algorithm.secp256k1, .ed25519]) func theyDial(algorithm: NodeKey.Algorithm) async throws {
        let daemon = try await Daemon()
        let listener = try await ListeningHost(key: .generate(algorithm))
        let answer = try await daemon.connect(to: listener.address)
        // The length of an answer with only its type: 0, ok.
        #expect(answer == [2, 8, 0])
        try await eventually { listener.host.peers.first?.info != nil }
        let peer = try #require(listener.host.peers.first)
        #expect(peer.connection.isInbound && peer.connection.peer == daemon.address.peerID)
        #expect(try await listener.host.ping(peer.connection.peer) > .zero)
        await listener.host.close()
    }
}
