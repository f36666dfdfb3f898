import GossipSub
import LibP2P
import NIOCore
import TestSupport
import Testing
import Core
import Waku

@testable import WakuP2P

/// The handling of each kind of unusual message by go-waku, nwaku and this node. The rows are the table of the article on
/// libp2p.
@Suite("Message validation")
struct GossipVerdictTests {
    enum Outcome: String {
        case forwarded = "accept"
        case delivered = "deliver, don't forward"
        case ignored = "ignore"
        case rejected = "reject"
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let form: String
        let goWaku: String
        let nwaku: String
        let outcome: Outcome
        let messages: [[UInt8]]
        var testDescription: String { form }
    }

    private static let topic = PubsubTopic.statusDefault
    /// With the present time: a run of all tests takes longer than a timestamp stays valid.
    private static var valid: WakuMessage {
        WakuMessage(payload: [1], contentTopic: ContentTopic(rawValue: "/c"), timestamp: .now())
    }
    private static let payload: [UInt8] = [0x0A, 1, 1]
    private static let contentTopic: [UInt8] = [0x12, 2, 0x2F, 0x63]
    private static var timestamp: [UInt8] { Array(valid.encoded().drop { $0 != 0x50 }) }
    private static let varintOf11Bytes = [UInt8](repeating: 0xFF, count: 10) + [1]

    private static func message(at time: Timestamp) -> [UInt8] {
        var message = valid
        message.timestamp = time
        return message.encoded()
    }

    private static func message(payloadByteCount: Int) -> [UInt8] {
        var message = valid
        message.payload = [UInt8](repeating: 0, count: payloadByteCount)
        return message.encoded()
    }

    static var rows: [Row] {
        [
            Row(
                form: "valid; fields in any order, or repeated: the last one counts", goWaku: "accept", nwaku: "accept",
                outcome: .forwarded,
                messages: [
                    valid.encoded(), timestamp + contentTopic + payload, [0x0A, 0, 0x12, 0] + valid.encoded(),
                    valid.encoded() + [0x18, 1] + contentTopic + payload,
                ]),
            Row(
                form: "not decodable: truncated, a varint of more than 10 bytes, a wire type that does not exist", goWaku: "reject",
                nwaku: "reject", outcome: .rejected,
                messages: [
                    [0xFF], Array(valid.encoded().dropLast()), valid.encoded() + [0x12, 1], valid.encoded() + [0x08],
                    valid.encoded() + [0x20] + varintOf11Bytes, valid.encoded() + varintOf11Bytes, valid.encoded() + [0x26],
                    valid.encoded() + [0x25, 1, 2, 3], valid.encoded() + [0x21, 1, 2, 3, 4, 5, 6, 7],
                    valid.encoded() + [0x22, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
                    // A group without an end, an end without a group, the end of another group.
                    valid.encoded() + [0x23], valid.encoded() + [0x24], valid.encoded() + [0x23, 0x2C],
                ]),
            Row(
                form: "no payload field", goWaku: "reject", nwaku: "reject", outcome: .rejected,
                messages: [contentTopic + timestamp, [0x08, 1] + contentTopic + timestamp, contentTopic + [0x0D, 1, 2, 3, 4]]),
            Row(
                form: "payload field present but empty", goWaku: "reject", nwaku: "accept", outcome: .ignored,
                messages: [[0x0A, 0] + contentTopic + timestamp, valid.encoded() + [0x0A, 0]]),
            Row(
                form: "no content topic, or an empty one", goWaku: "reject", nwaku: "reject", outcome: .rejected,
                messages: [payload + timestamp, payload + [0x12, 0] + timestamp, valid.encoded() + [0x12, 0], payload + [0x10, 1]]),
            Row(
                form: "content topic not UTF-8", goWaku: "reject", nwaku: "accept", outcome: .ignored,
                messages: [payload + [0x12, 2, 0xC3, 0x28] + timestamp, [0x12, 1, 0xFF] + valid.encoded()]),
            Row(
                form: "meta over 64 bytes", goWaku: "reject", nwaku: "by its limit", outcome: .ignored,
                messages: [valid.encoded() + [0x5A, 65] + [UInt8](repeating: 0, count: 65)]),
            Row(
                form: "unknown fields, however many; a known field once more with another wire type", goWaku: "accept", nwaku: "accept",
                outcome: .forwarded,
                messages: [
                    valid.encoded() + [UInt8]((0..<64).flatMap { _ in [0x20, 1] as [UInt8] }),
                    valid.encoded() + [UInt8]((0..<50_000).flatMap { _ in [0x22, 0] as [UInt8] }),
                    valid.encoded() + [0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4, 0xF8, 0xFF, 0xFF, 0xFF, 0x0F, 1],
                    valid.encoded() + [0x08, 1], valid.encoded() + [0x10, 1], valid.encoded() + [0x1A, 1, 9], valid.encoded() + [0x52, 0],
                    valid.encoded() + [0x5D, 1, 2, 3, 4], valid.encoded() + [0xFA, 1, 1, 1], valid.encoded() + [0xA8, 1, 1],
                ]),
            Row(
                form: "a varint of more than 64 bits; field number 0, or of more than 29 bits", goWaku: "reject", nwaku: "accept",
                outcome: .ignored,
                messages: [
                    valid.encoded() + [0x20] + [UInt8](repeating: 0xFF, count: 9) + [2], valid.encoded() + [0, 1],
                    valid.encoded() + [0x80, 0x80, 0x80, 0x80, 0x10, 1],
                ]),
            Row(
                form: "a group; version or ephemeral in more than 5 bytes", goWaku: "accept", nwaku: "reject", outcome: .ignored,
                messages: [
                    valid.encoded() + [0x23, 0x24], valid.encoded() + [0x23, 0x0A, 1, 1, 0x2B, 0x2C, 0x24], [0x0B, 0x0C] + valid.encoded(),
                    valid.encoded() + [0x18, 0x81, 0x80, 0x80, 0x80, 0x80, 0],
                    valid.encoded() + [0xF8, 1, 0x81, 0x80, 0x80, 0x80, 0x80, 0],
                ]),
            Row(
                form: "refused by each for another reason of those above", goWaku: "reject", nwaku: "reject", outcome: .rejected,
                messages: [
                    [0x12, 1, 0xFF, 0x23, 0x24] + payload, [0x0A, 0, 0x23, 0x24] + contentTopic, valid.encoded() + [0, 1, 0x23, 0x24],
                ]),
            Row(
                form: "timestamp far off, or none", goWaku: "accept", nwaku: "accept", outcome: .delivered,
                messages: [
                    message(at: .now() - .seconds(1000)), message(at: .now() + .seconds(1000)), message(at: Timestamp(rawValue: .min)),
                    payload + contentTopic,
                ]),
            Row(
                form: "over the size limit of 1 MiB", goWaku: "by configuration", nwaku: "by configuration", outcome: .ignored,
                messages: [message(payloadByteCount: 1 << 20), message(payloadByteCount: 1 << 20 - 30)]),
        ]
    }

    @Test("Verdicts match those of deployed nodes", arguments: rows.map(\.form))
    func verdicts(form: String) throws {
        let row = try #require(Self.rows.first { $0.form == form })
        for data in row.messages {
            let gossip = try Gossip()
            let received = try gossip.receive(data)
            let counters = gossip.router.counters
            let outcome: Outcome? =
                switch (received.messages.count, gossip.isForwarded, counters.accepted, counters.ignored, counters.rejected) {
                case (1, true, 1, 0, 0): .forwarded
                case (1, false, 0, 1, 0): .delivered
                case (0, false, 0, 1, 0): .ignored
                case (0, false, 0, 0, 1): .rejected
                default: nil
                }
            #expect(outcome == row.outcome, "\(hex(data))")
            // Only a rejected message lowers the peer's score.
            #expect((gossip.score < 0) == (row.outcome == .rejected), "\(hex(data))")
        }
    }

    /// Compares the columns of the other nodes.
    @Test("Messages that both implementations reject are rejected, those that one rejects ignored", arguments: rows)
    func columns(row: Row) {
        let expected: [Outcome] =
            switch (row.goWaku, row.nwaku) {
            case ("accept", "accept"): [.forwarded, .delivered]
            case ("reject", "reject"): [.rejected]
            default: [.ignored]
            }
        #expect(expected.contains(row.outcome))
    }

    @Test("A peer that forwards what deployed nodes forward is not disconnected")
    func honestForwarders() throws {
        let gossip = try Gossip()
        for row in Self.rows where row.outcome != .rejected {
            for data in row.messages { #expect(try gossip.receive(data).peersToLeave.isEmpty) }
        }
        #expect(gossip.score >= 0)
        #expect(gossip.router.counters.rejected == 0)
    }

    @Test("The article has the table")
    func article() throws {
        let lines =
            ["| message | go-waku | nwaku | waku-push |", "|---|---|---|---|"]
            + Self.rows.map { "| \($0.form) | \($0.goWaku) | \($0.nwaku) | \($0.outcome.rawValue) |" }
        #expect(try GeneratedTable("gossip verdicts", in: "Libp2p.md").isCurrent(lines), "run Deploy/dev/generate-tables")
    }

    private func hex(_ data: [UInt8]) -> String {
        data.prefix(60).map { String($0, radix: 16) }.joined(separator: " ") + (data.count > 60 ? " … \(data.count) bytes" : "")
    }

    /// A router with a sending peer and another peer in the mesh.
    private struct Gossip {
        private final class Life {}

        let router: GossipDriver
        private let sender = NodeKey.generate().peerID
        private let other = NodeKey.generate().peerID
        private let life = Life()

        init() throws {
            router = GossipDriver(
                configuration: GossipConfiguration(), topics: [topic], validator: MessageValidator(window: .seconds(60), wants: nil),
                seed: 1)
            for peer in [sender, other] {
                _ = router.connected(peer, over: ObjectIdentifier(life), version: .v11, isOutbound: false, isCurrent: { true })
                _ = router.received([try Self.frame(.subscription(topic: topic.rawValue, isOn: true))], from: peer)
            }
            _ = router.heartbeat()
            while router.nextFrame(to: other, over: ObjectIdentifier(life)) != nil {}
        }

        func receive(_ data: [UInt8]) throws -> GossipDriver.Outcome {
            let outcome = router.received([try Self.frame(.message(GossipMessage(topic: topic.rawValue, data: data)))], from: sender)
            _ = router.forward(outcome.held)
            return outcome
        }

        var isForwarded: Bool { router.nextFrame(to: other, over: ObjectIdentifier(life)) != nil }
        var score: Double { router.statuses.first { $0.peer == sender }?.status.score ?? -.infinity }

        private static func frame(_ item: Outgoing) throws -> ByteBuffer {
            var queue = OutboundQueue()
            _ = queue.append(item)
            var framing = FrameSplitter(limit: GossipRPC.maximumByteCount)
            while let bytes = queue.nextFrame() { framing.append(bytes) }
            let frame = try framing.next()
            return ByteBuffer(bytes: try #require(frame))
        }
    }
}
