import NIOCore
import TestSupport
import Core
import Waku
import WakuCrypto

@testable import GossipSub
@testable import LibP2P
@testable import WakuP2P
@testable import WakuWireServer

/// A decoder of foreign bytes, and messages that it accepts.
struct Decoder: Sendable {
    enum Outcome: Sendable { case taken, refused, inconsistent }

    let name: String
    let seeds: [[UInt8]]
    let decode: @Sendable ([UInt8]) -> Outcome

    /// The name of its folder in Corpora.
    var folder: String { String(name.filter { $0 != "'" }.map { $0 == " " ? "-" : $0 }) }

    /// Of a message that is written as it was read.
    static func message<Message: Hashable & Sendable>(
        _ name: String, _ seeds: [[UInt8]], _ parse: @escaping @Sendable ([UInt8]) throws -> Message,
        _ encode: @escaping @Sendable (Message) -> [UInt8]
    ) -> Decoder {
        Decoder(name: name, seeds: seeds) { bytes in
            guard let message = try? parse(bytes) else { return .refused }
            guard let again = try? parse(encode(message)), again == message else { return .inconsistent }
            return .taken
        }
    }

    static func reading(_ name: String, _ seeds: [[UInt8]], _ read: @escaping @Sendable ([UInt8]) throws -> Void) -> Decoder {
        Decoder(name: name, seeds: seeds) { bytes in
            do {
                try read(bytes)
                return .taken
            } catch {
                return .refused
            }
        }
    }

    /// The same each time, as far as seeds go.
    private static let key = NodeKey((try? PrivateKey(bytes: [UInt8](repeating: 7, count: 32))) ?? .generate())

    static let all: [Decoder] =
        gossip + waku + lists + addresses + transport + status + statusV01 + session + services + files + backups + storedRows
        + connections + http

    private static let waku0 = WakuMessage(
        payload: [1, 2, 3], contentTopic: ContentTopic(rawValue: "/waku/1/0x01020304/rfc26"), timestamp: Timestamp(rawValue: 1_700_000_000))
    private static let received = ReceivedMessage(message: waku0, pubsubTopic: .statusDefault)

    private static var rpc: [UInt8] {
        let topic = PubsubTopic.statusDefault.rawValue
        let message = GossipMessage(topic: topic, data: waku0.encoded())
        var queue = OutboundQueue()
        for item in [
            Outgoing.subscription(topic: topic, isOn: true), .graft(topic: topic), .prune(topic: topic, backoff: .seconds(60)),
            .message(message), .ihave(topic: topic, ids: [message.id]), .iwant([message.id]), .idontwant([message.id]),
        ] { _ = queue.append(item) }
        return queue.nextFrame() ?? []
    }

    /// Limits that an input of a few hundred bytes reaches.
    static let smallGossip: GossipConfiguration = {
        var configuration = GossipConfiguration()
        configuration.seenPeriod = .seconds(4)
        configuration.seenCapacity = 10
        configuration.maximumDataByteCount = 96
        configuration.pendingByteCount = 160
        configuration.cacheByteCount = 400
        configuration.idontwantByteCount = 16
        configuration.idLimit = 8
        configuration.topicLimit = 4
        configuration.score.decayPeriod = .seconds(3)
        configuration.score.opportunisticHeartbeats = 2
        configuration.score.graylistThreshold = -500
        return configuration
    }()

    private static var gossip: [Decoder] {
        [
            // Three peers send them in turn, one in each second. A message is judged after the next frame, by its first byte.
            reading("frames of gossip", [rpc]) { bytes in
                var framing = FrameSplitter(limit: GossipRPC.maximumByteCount)
                var gossip = GossipSubRouter(configuration: smallGossip, seed: 1)
                let peers = (1...3).map { PeerNumber(rawValue: $0) }
                gossip.subscribe(to: PubsubTopic.statusDefault.rawValue, at: .zero)
                for peer in peers { gossip.connected(peer, version: .v12, isOutbound: false) }
                var now = Instant.zero
                var (count, pending) = (0, [GossipMessage]())
                // As a stream brings it: in pieces.
                for start in stride(from: 0, to: bytes.count, by: 7) {
                    framing.append(bytes[start..<min(start + 7, bytes.count)])
                    while let frame = try framing.next() {
                        gossip.received(try GossipRPC(parsing: frame), from: peers[count % peers.count], at: now)
                        count += 1
                        for message in pending {
                            let verdicts: [UInt8: GossipVerdict] = [0: .ignore, 1: .reject]
                            gossip.judged(message.id, as: verdicts[message.data.first ?? 2] ?? .accept, at: now)
                        }
                        pending = gossip.takeActions().compactMap { if case .validate(let message, _) = $0 { message } else { nil } }
                        now = now + .seconds(1)
                        gossip.heartbeat(at: now)
                    }
                }
                for peer in peers { gossip.disconnected(peer, at: now) }
            }
        ]
    }

    private static var waku: [Decoder] {
        let hash = waku0.hash(on: .statusDefault)
        let status = WakuStatus(code: 200, text: "OK")
        return [
            message("Waku messages", [waku0.encoded()], { try WakuMessage(parsing: $0) }, { $0.encoded() }),
            message(
                "metadata", [WakuMetadata(clusterID: 16, shards: [32, 1]).encoded()], { try WakuMetadata(parsing: $0) }, { $0.encoded() }),
            message(
                "store answers",
                [
                    StoreResponse(
                        requestID: "a", status: status, entries: [.init(hash: hash, message: received), .init(hash: hash, message: nil)],
                        cursor: hash.bytes
                    ).encoded()
                ], { try StoreResponse(parsing: $0) }, { $0.encoded() }),
            message(
                "answers with a status",
                [
                    StatusResponse(requestID: "a", status: status, relayPeerCount: 3).encoded(),
                    StatusResponse(requestID: "a", status: status).encoded(),
                ], { try StatusResponse(parsing: $0) }, { $0.encoded() }),
            message(
                "answers of old lightpush", [OldLightpushResponse(requestID: "a", isSuccess: true, text: "OK").encoded()],
                { try OldLightpushResponse(parsing: $0) }, { $0.encoded() }),
            message("filter pushes", [FilterPush(message: received).encoded()], { try FilterPush(parsing: $0) }, { $0.encoded() }),
        ]
    }

    private static var lists: [Decoder] {
        let enr =
            "enr:-IS4QHCYrYZbAKWCBRlAy5zzaDZXJBGkcnh4MHcBFZntXNFrdvJjX04jRzjzCBOonrkTfj499SZuOh8R33Ls8RRcy5wBgmlkgnY0gmlwhH8AAAGJc2VjcDI1NmsxoQPKY0yuDUmstAHYpMa2_oxVtw0RW_QAdpzBQA8yWM0xOIN1ZHCCdl8"
        let url = "enrtree://AM5FCQLWIZX2QFPNJAP7VUERCCRNGRHWZG3YYHIUV7BVDQ5FDPRT2@nodes.example.org"
        // Name, type and class of the question; a record that points to its name.
        let dns: [UInt8] =
            [0, 7, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0x61, 0, 0, 16, 0, 1]
            + [0xC0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, 4, 3, 0x61, 0x62, 0x63]
        return [
            reading("node records", [Base64.decodeURL(enr.dropFirst(4).utf8) ?? []]) { _ = try NodeRecord(parsing: $0) },
            reading("node records as text", [Array(enr.utf8)]) { _ = try NodeRecord(parsing: String(decoding: $0, as: UTF8.self)) },
            reading("addresses of lists", [Array(url.utf8)]) { _ = try NodeTreeURL(parsing: String(decoding: $0, as: UTF8.self)) },
            reading("answers of the DNS", [dns]) { _ = try DNSMessage.texts(in: $0, to: "a", id: 7) },
        ]
    }

    private static var addresses: [Decoder] {
        let key = Self.key
        let other = NodeKey.generate(.ed25519)
        let text = "/ip4/127.0.0.1/tcp/60000/p2p/\(key.peerID)"
        guard let address = try? Multiaddr(text) else { return [] }
        var info = PeerInfo()
        info.publicKey = key.publicKey
        info.protocols = ["/ipfs/ping/1.0.0", "/ipfs/id/1.0.0"]
        info.listenAddresses = [address.withoutPeerID]
        info.agentVersion = "waku-push"
        info.protocolVersion = "ipfs/0.1.0"
        info.observedAddress = address.withoutPeerID
        let names = ["/dns4/node.example/tcp/1", "/ip6/::1/tcp/9", text].map { Array($0.utf8) }
        return [
            message("multiaddrs", [address.encoded()], { try Multiaddr(parsing: $0) }, { $0.encoded() }),
            message(
                "multiaddrs as text", names, { try Multiaddr(String(decoding: $0, as: UTF8.self)) }, { Array($0.description.utf8) }),
            message("peer ids", [key.peerID.bytes, other.peerID.bytes], { try PeerID(parsing: $0) }, { $0.bytes }),
            message(
                "peer ids as text", [Array("\(key.peerID)".utf8), Array("\(other.peerID)".utf8)],
                { try PeerID(String(decoding: $0, as: UTF8.self)) }, { Array("\($0)".utf8) }),
            reading("public keys", [key.publicKey.encoded(), other.publicKey.encoded()]) { _ = try NodePublicKey(parsing: $0) },
            message("identify", [info.encoded()], { try PeerInfo(parsing: $0) }, { $0.encoded() }),
        ]
    }

    private static var transport: [Decoder] {
        let lines = MultistreamNegotiation.line("/multistream/1.0.0")
        let proposal = Array(buffer: lines) + Array(buffer: MultistreamNegotiation.line("/a/1.0.0"))
        // A stream opened with 3 bytes, a window, a ping, an end.
        let yamux: [UInt8] =
            [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3] + [0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0] + [0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]
            + [0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0]
        let identity = NoiseIdentity(key)
        return [
            reading("negotiations", [proposal]) { bytes in
                let proposals = ["/a/1.0.0", "/" + String(repeating: "b", count: 200)]
                for initial in [MultistreamNegotiation.responder(), MultistreamNegotiation(proposing: proposals)] {
                    var (negotiation, input, output) = (initial, ByteBuffer(bytes: bytes), ByteBuffer())
                    _ = try negotiation.receive(&input, output: &output, accepts: { $0 == "/a/1.0.0" })
                }
            },
            reading("yamux", [yamux]) { bytes in
                for role in [NoiseHandshake.Role.responder, .initiator] {
                    var limits = YamuxSession.Limits()
                    limits.inboundStreams = 8
                    limits.bufferedBytes = 256
                    var session = YamuxSession(role, limits: limits)
                    _ = session.open()
                    var input = ByteBuffer(bytes: bytes)
                    var events: [YamuxSession.Event] = []
                    do throws(YamuxError) {
                        try session.receive(&input, &events)
                    } catch {
                        if role == .responder { throw error }
                    }
                    for case .data(let id, let data) in events { session.consumed(data.readableBytes, on: id) }
                    for case .opened(let id) in events { session.finish(id) }
                }
            },
            // A static key, then the payload that proves whose it is.
            reading("identities of Noise", [identity.staticKey.publicKey + identity.payload]) { bytes in
                _ = try NoiseIdentity.peer(provenBy: Array(bytes.dropFirst(32)), staticKey: Array(bytes.prefix(32)))
            },
        ]
    }
}
