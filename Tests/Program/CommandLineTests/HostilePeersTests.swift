import Foundation
import NIOCore
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import LibP2P
@testable import WakuP2P

/// Attacks by libp2p peers on a daemon, while a client registers, queries and notifies.
@Suite("Hostile libp2p peers", .timeLimit(.minutes(5)))
struct HostilePeersTests {
    /// Beyond what it has without them: the limits of `HostConfiguration` and of gossip allow for some tens of MiB. The address sanitizer keeps
    /// 256 MiB of freed memory, and adds more around each allocation.
    private static let room = (ProcessInfo.processInfo.environment["TEST_TIMEOUT_FACTOR"] == nil ? 160 : 1024) << 20

    @Test func othersAreServedAndMemoryIsBounded() async throws {
        let node = try OperatedNode()
        // The client and the gossiping attackers dial from 127.0.0.1, the others from blocks of their own.
        let daemon = try await node.start("--log-level", "info", "--exempt-network", "127.0.0.0/24")
        let address = try await daemon.multiaddr()
        let port = try #require(UInt16(address.split(separator: "/")[3]))
        let server = try Multiaddr(address)
        let before = try #require(Self.residentBytes(daemon.process.processID, "VmRSS"))

        let progress = Progress()
        let gossip = GossipAttack(server)
        try await withThrowingDiscardingTaskGroup { group in
            for (number, attack) in RawAttack.allCases.enumerated() {
                // Threads of their own: they wait for sockets.
                Thread.detachNewThread {
                    for _ in 0..<500 where !progress.isOver {
                        // Each from a /24 of its own: the limit for one must not be what saves the others.
                        attack.run(port, from: UInt8(2 + number), server: server.peerID)
                        progress.note("\(attack)")
                        // Not to overload the machine.
                        Thread.sleep(forTimeInterval: 0.1)
                    }
                }
            }
            for attack in GossipAttack.Kind.allCases {
                group.addTask {
                    for _ in 0..<500 where !progress.isOver {
                        await gossip.run(attack)
                        progress.note("\(attack)")
                    }
                }
            }
            defer { progress.end() }
            let kindCount = RawAttack.allCases.count + GossipAttack.Kind.allCases.count
            // In the long form each runs twice: the second attempt meets the remains of the first.
            let attempts = LongTests.areEnabled ? 2 : 1
            try await eventually { progress.count(atLeast: attempts) == kindCount }
            try await wholeJob(node, address)
        }

        #expect(daemon.process.isRunning)
        let highest = try #require(Self.residentBytes(daemon.process.processID, "VmHWM"))
        #expect(highest - before < Self.room, "\(before >> 20) MiB before, \(highest >> 20) MiB at most")
        // The client that was served before is served after, by the same process.
        #expect(try await node.query(daemon).rows.last == ["bobs-phone", "1", "yes"])
        try await eventually {
            let peers = try await node.admin("peers", "--json")
            return peers.status == 0 && !peers.output.contains("\"isInbound\" : true")
        }
        let ended = await daemon.stop()
        #expect(ended.status == 0)
    }

    /// Which attacks were tried how often.
    private final class Progress: Sendable {
        private let state = Mutex((isOver: false, attempts: [String: Int]()))

        var isOver: Bool { state.withLock(\.isOver) }
        var attempts: [String: Int] { state.withLock(\.attempts) }
        func end() { state.withLock { $0.isOver = true } }
        func note(_ attack: String) { state.withLock { $0.attempts[attack, default: 0] += 1 } }
        func count(atLeast limit: Int) -> Int { state.withLock { $0.attempts.values.count { $0 >= limit } } }
    }

    /// By a client that dials the same port.
    private func wholeJob(_ node: OperatedNode, _ relay: String) async throws {
        let common = ["--relay", relay, "--server", node.server.publicKey, "--timeout", "60s"]
        let registered = try await node.recorded(
            ["client", "register"] + common + [
                "--identity", node.bob.path, "--device-token", OperatedNode.deviceToken, "--access-token", OperatedNode.accessToken,
                "--apn-topic", "im.status.ethereum", "--installation", "bobs-phone",
            ])
        #expect(registered.status == 0, "\(registered.errors)")
        let queried = try await node.recorded(["client", "query"] + common + ["--registrant", node.bob.publicKey])
        #expect(queried.rows.last == ["bobs-phone", "1", "yes"], "\(queried.errors)")
        try await eventually {
            let notified = try await node.recorded(
                ["client", "notify"] + common + ["--registrant", node.bob.publicKey, "--message-id", "c0ffee"])
            return notified.status == 0
        }
        #expect(node.gorush.requests.count { $0.head.hasPrefix("POST") } == 1)
    }

    private static func residentBytes(_ process: Int32, _ field: String) -> Int? {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix(field + ":") }
        return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 * 1024 }
    }
}

// MARK: Below the streams

/// Attacks on sockets, the handshake and the multiplexer.
private enum RawAttack: CaseIterable {
    case silence, noise, halfAHandshake, manyStreams, windowOverrun, unreadPings, alteredFrame, halfAFrame, splitHeaders, idlePeers,
        halfPushes

    /// Once; returns when the other side closed, or all was sent.
    func run(_ port: UInt16, from block: UInt8, server: PeerID?) {
        guard let socket = RawSocket(port: port, from: block) else { return }
        switch self {
        case .silence:
            // As many as are accepted, until they are closed because they send nothing.
            let others = (0..<30).compactMap { _ in RawSocket(port: port, from: block) }
            socket.waitUntilClosed(seconds: 2)
            withExtendedLifetime(others) {}
        case .noise:
            socket.send(randomBytes(1 << 16))
            socket.waitUntilClosed(seconds: 2)
        case .halfAHandshake:
            socket.send(Self.line("/multistream/1.0.0") + Self.line("/noise") + [0, 32] + X25519PrivateKey.generate().publicKey)
            socket.waitUntilClosed(seconds: 2)
        case .idlePeers:
            // More than a block may have.
            let peers = (0..<20).compactMap { _ in RawSocket(port: port, from: block).flatMap { RawPeer($0, expecting: server) } }
            socket.waitUntilClosed(seconds: 2)
            withExtendedLifetime(peers) {}
        default:
            guard var peer = RawPeer(socket, expecting: server) else { return }
            secured(&peer)
        }
    }

    private func secured(_ peer: inout RawPeer) {
        switch self {
        case .manyStreams:
            // As with a million: one of the first thousands ends the connection.
            for start in stride(from: 0, to: 1_000_000, by: 1_000) {
                guard peer.send((start..<start + 1_000).flatMap { Self.frame(1, 1, UInt32(2 * $0 + 1), 0) }) else { return }
            }
        case .windowOverrun:
            peer.send(Self.frame(1, 1, 1, 0) + Self.frame(0, 0, 1, 16 << 20))
            while peer.send([UInt8](repeating: 7, count: 60_000)) {}
        case .unreadPings:
            let pings = (0..<1_000).flatMap { Self.frame(2, 1, 0, $0) }
            for _ in 0..<1_000 { guard peer.send(pings) else { return } }
        case .alteredFrame:
            peer.sendAltered(Self.frame(2, 1, 0, 1))
            peer.socket.waitUntilClosed(seconds: 2)
        case .halfAFrame:
            peer.send(Self.frame(1, 1, 1, 0) + Self.frame(0, 0, 1, 1000) + [1, 2, 3])
        case .splitHeaders:
            // More than the node may use, each read within a header.
            let frame = Self.frame(0, 0, 1, 65_000) + [UInt8](repeating: 7, count: 65_000)
            peer.send(Array(frame.prefix(6)))
            let shifted = Array(frame.dropFirst(6) + frame.prefix(6))
            for _ in 0..<4_000 { guard peer.send(shifted) else { return } }
        case .halfPushes:
            // Of identify, as many as there may be, each without its end.
            let push = Self.line("/multistream/1.0.0") + Self.line(Identify.pushID) + [0xE0, 0xD4, 0x03] + randomBytes(50_000)
            for stream in stride(from: UInt32(1), to: 17, by: 2) {
                guard peer.send(Self.frame(1, 1, stream, 0) + Self.frame(0, 0, stream, UInt32(push.count)) + push) else { return }
            }
            peer.socket.waitUntilClosed(seconds: 2)
        case .silence, .noise, .halfAHandshake, .idlePeers: break
        }
    }

    private static func line(_ text: String) -> [UInt8] { Array(buffer: MultistreamNegotiation.line(text)) }

    private static func frame(_ type: UInt8, _ flags: UInt16, _ stream: UInt32, _ length: UInt32) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeMultipleIntegers(UInt8(0), type, flags, stream, length)
        return Array(buffer: buffer)
    }
}

/// A connection from 127.0.x.1 to 127.0.0.1. Nothing waits for longer than two seconds.
private final class RawSocket {
    private let descriptor: Int32

    init?(port: UInt16, from block: UInt8) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var limit = timeval(tv_sec: 2, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        var (own, target) = (LoopbackAddress(host: 0x7f00_0001 | UInt32(block) << 8), LoopbackAddress(port: port))
        guard own.withPointer({ bind(descriptor, $0, $1) }) == 0, target.withPointer({ connect(descriptor, $0, $1) }) == 0 else {
            return nil
        }
    }

    deinit { close(descriptor) }

    /// False when the other side closed, or reads nothing.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// nil when the other side closed, or sends nothing.
    func receive() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = bytes.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        return count > 0 ? Array(bytes.prefix(count)) : nil
    }

    func waitUntilClosed(seconds: Double) {
        let end = Date() + seconds
        while Date() < end, receive() != nil {}
    }
}

/// The dialing end of a secured connection, which can send any bytes.
private struct RawPeer {
    let socket: RawSocket
    private var transport: NoiseTransport

    init?(_ socket: RawSocket, expecting peer: PeerID?) {
        var upgrade = ConnectionUpgrade(.initiator, identity: NoiseIdentity(.generate()), expecting: peer)
        var input = ByteBuffer()
        socket.send(Array(buffer: upgrade.opening))
        while let bytes = socket.receive() {
            input.writeBytes(bytes)
            var output = ByteBuffer()
            guard let upgraded = try? upgrade.receive(&input, output: &output) else {
                guard socket.send(Array(buffer: output)) else { return nil }
                continue
            }
            socket.send(Array(buffer: output))
            (self.socket, transport) = (socket, upgraded.transport)
            return
        }
        return nil
    }

    @discardableResult
    mutating func send(_ frames: [UInt8]) -> Bool {
        var plain = ByteBuffer(bytes: frames)
        return socket.send(Array(buffer: transport.seal(&plain)))
    }

    mutating func sendAltered(_ frames: [UInt8]) {
        var plain = ByteBuffer(bytes: frames)
        var sealed = transport.seal(&plain)
        if let byte = sealed.getInteger(at: 5, as: UInt8.self) { sealed.setInteger(byte ^ 1, at: 5) }
        socket.send(Array(buffer: sealed))
    }
}

// MARK: In gossip

/// Attacks on gossip and on Waku requests, by peers that behave well otherwise.
private struct GossipAttack: Sendable {
    enum Kind: CaseIterable {
        case hugeFrame, partOfAFrame, nonsense, invalidMessages, announcements, wishes, grafts, subscriptions, junkOnTheTopic, emptyFrames
    }

    private static let topic = Array(PubsubTopic.statusDefault.rawValue.utf8)
    private let server: Multiaddr

    init(_ server: Multiaddr) { self.server = server }

    /// Once, with a node of its own.
    func run(_ kind: Kind) async {
        let host = Host(key: .generate())
        host.serve(WakuProtocol.metadata) { stream in
            try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
        }
        // Reads the daemon's output, and discards it.
        host.serve(WakuProtocol.relay) { stream in while try await stream.read() != nil {} }
        do {
            let peer = try await host.connect(to: server).peer
            let stream = try await host.openStream(to: peer, [WakuProtocol.relay])
            for number in 0..<50 { try await stream.write(ByteBuffer(bytes: Self.frame(kind, number))) }
            stream.close()
        } catch {
            // Disconnected, as expected.
        }
        await host.close()
    }

    private static func frame(_ kind: Kind, _ number: Int) -> [UInt8] {
        switch kind {
        case .partOfAFrame: return number == 0 ? varint(1 << 20) + randomBytes((1 << 20) - 1) : []
        case .hugeFrame: return varint(1 << 31) + randomBytes(1000)
        case .nonsense: return message(randomBytes(500))
        case .invalidMessages: return message(subscription + field(2, field(2, randomBytes(200)) + field(4, topic)))
        case .announcements: return message(control(1, field(1, topic) + (0..<2000).flatMap { _ in field(2, randomBytes(32)) }))
        case .wishes: return message(control(2, (0..<2000).flatMap { _ in field(1, randomBytes(32)) }))
        case .grafts: return message((0..<500).flatMap { _ in control(3, field(1, topic)) })
        case .subscriptions:
            return message((0..<1000).flatMap { field(1, [0x08, 1] + field(2, Array("/topic/\(number)/\($0)".utf8))) })
        case .emptyFrames: return [UInt8](repeating: 0, count: 200_000)
        case .junkOnTheTopic:
            let junk = WakuMessage(
                payload: randomBytes(2000), contentTopic: ContentTopic(TopicTag(of: "junk \(number % 7)")), timestamp: .now())
            return message(subscription + field(2, field(2, junk.encoded()) + field(4, topic)))
        }
    }

    private static let subscription = field(1, [0x08, 1] + field(2, topic))

    private static func control(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] { field(3, field(number, bytes)) }

    private static func message(_ bytes: [UInt8]) -> [UInt8] { varint(bytes.count) + bytes }

    /// Of protobuf, with a length.
    private static func field(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] { [number << 3 | 2] + varint(bytes.count) + bytes }

    private static func varint(_ value: Int) -> [UInt8] {
        value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7F) | 0x80] + varint(value >> 7)
    }

}
