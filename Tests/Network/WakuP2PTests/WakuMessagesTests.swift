import TestSupport
import Testing
import Core
import Waku

@testable import WakuP2P
@testable import WakuWireServer

private let topic = PubsubTopic(rawValue: "/waku/2/rs/16/32")
private let topicField = Array("/waku/2/rs/16/32".utf8)
private let content = ContentTopic(rawValue: "/c")
private let message = WakuMessage(payload: [1, 2], contentTopic: content, version: 1, timestamp: Timestamp(rawValue: 5))
/// payload, content topic, version, timestamp by zigzag.
private let messageBytes: [UInt8] = [0x0A, 2, 1, 2, 0x12, 2, 0x2F, 0x63, 0x18, 1, 0x50, 10]

@Suite("Store queries and responses")
struct StoreMessagesTests {
    @Test("A query, byte by byte")
    func query() throws {
        let query = StoreQuery(
            pubsubTopic: topic, contentTopics: [content], startTime: Timestamp(rawValue: 1), endTime: Timestamp(rawValue: -1),
            cursor: "09", pageSize: 20)
        let request = StoreRequest(
            requestID: "q", includesMessages: true, pubsubTopic: topic, contentTopics: [content], startTime: Timestamp(rawValue: 1),
            endTime: Timestamp(rawValue: -1), cursor: [9], pageSize: 20)
        let bytes: [UInt8] =
            [0x0A, 1, 0x71, 0x10, 1, 0x52, 16] + topicField + [0x5A, 2, 0x2F, 0x63, 0x60, 2, 0x68, 1]
            + [0x9A, 0x03, 1, 9, 0xA0, 0x03, 1, 0xA8, 0x03, 20]
        #expect(query.encoded(requestID: "q") == bytes)
        #expect(try StoreRequest(parsing: bytes) == request)
        var next = query
        next.cursor = "0x09"
        #expect(next.encoded(requestID: "q") == bytes)
        // Unknown fields in front.
        #expect(try StoreRequest(parsing: [0xF8, 0x07, 1, 0xF2, 0x07, 1, 0] + bytes) == request)
    }

    @Test("Times at the limits of their range", arguments: [Int64.min, -1, 0, 1, 1_800_000_000_000_000_000, .max])
    func times(time: Int64) throws {
        let query = StoreQuery(startTime: Timestamp(rawValue: time))
        #expect(try StoreRequest(parsing: query.encoded(requestID: "")).startTime?.rawValue == time)
    }

    @Test(
        "Page sizes out of range are replaced with the nearest in range",
        arguments: [(Int.min, 1), (0, 1), (1, 1), (100, 100), (.max, 100)] as [(Int, UInt64)])
    func pageSizes(given: Int, sent: UInt64) throws {
        var query = StoreQuery()
        query.pageSize = given
        for query in [query, StoreQuery(pageSize: given)] {
            #expect(try StoreRequest(parsing: query.encoded(requestID: "")).pageSize == sent)
        }
    }

    @Test("A query for the newest messages")
    func descending() {
        let bytes = StoreQuery(isAscending: false).encoded(requestID: "")
        #expect(bytes == [0x0A, 0, 0x10, 1, 0xA0, 0x03, 0, 0xA8, 0x03, 100])
    }

    @Test("A query for hashes")
    func hashes() throws {
        let hash = MessageHash(bytes: [UInt8](repeating: 3, count: 32))
        let bytes = StoreQuery(hashes: [hash], includesMessages: false).encoded(requestID: "")
        #expect(bytes == [0x0A, 0, 0x10, 0, 0xA2, 0x01, 32] + hash.bytes + [0xA0, 0x03, 1, 0xA8, 0x03, 100])
        #expect(try StoreRequest(parsing: bytes) == StoreRequest(hashes: [hash], pageSize: 100))
    }

    @Test("A response, byte by byte; hashes are computed from the messages")
    func answer() throws {
        let received = ReceivedMessage(message: message, pubsubTopic: topic)
        let wrong = [UInt8](repeating: 4, count: 32)
        let entry: [UInt8] = [0x0A, 32] + wrong + [0x12, UInt8(messageBytes.count)] + messageBytes + [0x1A, 16] + topicField
        let bytes: [UInt8] =
            [0x0A, 1, 0x71, 0x50, 0xC8, 0x01, 0x5A, 2, 0x6F, 0x6B, 0xA2, 0x01, UInt8(entry.count)] + entry
            + [0xA2, 0x01, 34, 0x0A, 32] + wrong + [0x9A, 0x03, 1, 9]
        let response = try StoreResponse(parsing: bytes)
        #expect(response.requestID == "q" && response.status == WakuStatus(code: 200, text: "ok") && response.status.isSuccess)
        #expect(
            response.entries == [.init(hash: received.hash, message: received), .init(hash: MessageHash(bytes: wrong), message: nil)])
        #expect(response.cursor == [9])
        #expect(try StoreResponse(parsing: response.encoded()) == response)
    }

    @Test("An invalid message keeps its hash and the other entries")
    func unreadable() throws {
        let hash = [UInt8](repeating: 4, count: 32)
        let entry: [UInt8] = [0x0A, 32] + hash + [0x12, 1, 0xFF, 0x1A, 16] + topicField
        let response = try StoreResponse(parsing: [0x50, 0xC8, 0x01, 0xA2, 0x01, UInt8(entry.count)] + entry)
        #expect(response.entries == [.init(hash: MessageHash(bytes: hash), message: nil)])
        #expect(response.unreadableCount(includesMessages: true) == 1 && response.unreadableCount(includesMessages: false) == 0)
        var mixed = response
        let empty = ReceivedMessage(
            message: WakuMessage(payload: [], contentTopic: message.contentTopic, timestamp: .now()), pubsubTopic: topic)
        mixed.entries += [
            .init(hash: empty.hash, message: empty),
            .init(hash: empty.hash, message: ReceivedMessage(message: message, pubsubTopic: topic)),
        ]
        #expect(mixed.unreadableCount(includesMessages: true) == 2)
    }

    @Test("Responses without status, with invalid hashes or too many entries are refused")
    func refusals() {
        #expect(throws: ProtobufError.malformed) { try StoreResponse(parsing: []) }
        #expect(throws: ProtobufError.malformed) { try StoreResponse(parsing: [0x50, 1, 0xA2, 0x01, 3, 0x0A, 1, 1]) }
        #expect(throws: ProtobufError.malformed) { try StoreRequest(parsing: [0xA2, 0x01, 1, 1]) }
        let entry: [UInt8] = [0xA2, 0x01, 34, 0x0A, 32] + [UInt8](repeating: 4, count: 32)
        #expect(throws: ProtobufError.tooMany) { try StoreResponse(parsing: [0x50, 1] + [[UInt8]](repeating: entry, count: 101).joined()) }
        let contentTopic: [UInt8] = [0x5A, 1, 0x63]
        #expect(throws: ProtobufError.tooMany) {
            try StoreRequest(parsing: Array([[UInt8]](repeating: contentTopic, count: 11).joined()))
        }
        #expect(throws: ProtobufError.tooLong) { try StoreRequest(parsing: [0x0A, 0x81, 0x02] + [UInt8](repeating: 0x61, count: 257)) }
        #expect(throws: ProtobufError.notUTF8) { try StoreRequest(parsing: [0x0A, 1, 0xFF]) }
    }
}

@Suite("Lightpush and filter messages")
struct LightpushMessagesTests {
    @Test("Lightpush 3, byte by byte")
    func lightpush() throws {
        let request = LightpushRequest(requestID: "r", pubsubTopic: topic, message: message)
        let bytes: [UInt8] = [0x0A, 1, 0x72, 0xA2, 0x01, 16] + topicField + [0xAA, 0x01, UInt8(messageBytes.count)] + messageBytes
        #expect(try LightpushRequest(parsing: bytes) == request)
        #expect(try LightpushRequest(parsing: request.encoded()) == request)
        let response = StatusResponse(requestID: "r", status: WakuStatus(code: 200), relayPeerCount: 3)
        #expect(response.encoded() == [0x0A, 1, 0x72, 0x50, 0xC8, 0x01, 0x60, 3])
        #expect(try StatusResponse(parsing: response.encoded()) == response)
        let refusal = try StatusResponse(parsing: [0x50, 0xF9, 0x03, 0x5A, 2, 0x6E, 0x6F])
        #expect(refusal.status == WakuStatus(code: 505, text: "no"))
        #expect(refusal.relayPeerCount == nil && !refusal.status.isSuccess)
        #expect(throws: ProtobufError.malformed) { try LightpushRequest(parsing: [0x0A, 1, 0x72]) }
        #expect(throws: ProtobufError.malformed) { try StatusResponse(parsing: [0x0A, 1, 0x72]) }
    }

    @Test("The older lightpush version, byte by byte")
    func old() throws {
        let request = OldLightpushRequest(requestID: "r", pubsubTopic: topic, message: message)
        let inner: [UInt8] = [0x0A, 16] + topicField + [0x12, UInt8(messageBytes.count)] + messageBytes
        #expect(try OldLightpushRequest(parsing: [0x0A, 1, 0x72, 0x12, UInt8(inner.count)] + inner) == request)
        #expect(try OldLightpushRequest(parsing: request.encoded()) == request)
        let response = OldLightpushResponse(requestID: "r", isSuccess: true, text: "")
        #expect(response.encoded() == [0x0A, 1, 0x72, 0x1A, 2, 0x08, 1])
        #expect(try OldLightpushResponse(parsing: response.encoded()) == response)
        let refusal = try OldLightpushResponse(parsing: [0x1A, 4, 0x12, 2, 0x6E, 0x6F])
        #expect(!refusal.isSuccess && refusal.text == "no")
        #expect(throws: ProtobufError.malformed) { try OldLightpushResponse(parsing: [0x0A, 1, 0x72]) }
        #expect(throws: ProtobufError.malformed) { try OldLightpushResponse(parsing: request.encoded()) }
    }

    /// Description fields of a store or lightpush response and of the older lightpush response.
    @Test("Descriptions of peers become one short line of printable ASCII")
    func descriptions() throws {
        let hostile = Array("no\u{1B}[2J\u{202E} peers\nrelay attached".utf8) + [0xFF]
        for text in [hostile, Array(repeating: UInt8(ascii: "a"), count: 1000)] {
            let field: [UInt8] = [UInt8(text.count & 0x7F) | 0x80, UInt8(text.count >> 7)] + text
            let expected = text == hostile ? "no[2J peers" : String(repeating: "a", count: 160)
            #expect("\(try StoreResponse(parsing: [0x50, 0xF4, 0x03, 0x5A] + field).status)" == "status 500: \(expected)")
            #expect("\(try StatusResponse(parsing: [0x0A, 1, 0x72, 0x50, 0xF4, 0x03, 0x5A] + field).status)" == "status 500: \(expected)")
            let response: [UInt8] = [0x12] + field
            let length: [UInt8] = [UInt8(response.count & 0x7F) | 0x80, UInt8(response.count >> 7)]
            #expect(try OldLightpushResponse(parsing: [0x1A] + length + response).text == expected)
        }
    }

    @Test("Filter, byte by byte")
    func filter() throws {
        let request = FilterSubscribeRequest(requestID: "r", kind: .subscribe, pubsubTopic: topic, contentTopics: [content])
        #expect(request.encoded() == [0x0A, 1, 0x72, 0x10, 1, 0x52, 16] + topicField + [0x5A, 2, 0x2F, 0x63])
        #expect(try FilterSubscribeRequest(parsing: request.encoded()) == request)
        // proto3 leaves a zero out.
        #expect(try FilterSubscribeRequest(parsing: [0x0A, 1, 0x72]).kind == .ping)
        #expect(throws: ProtobufError.malformed) { try FilterSubscribeRequest(parsing: [0x10, 9]) }
        let topics = [[UInt8]](repeating: [0x5A, 1, 0x63], count: 101)
        #expect(throws: ProtobufError.tooMany) { try FilterSubscribeRequest(parsing: Array(topics.joined())) }
        let response = StatusResponse(requestID: "r", status: WakuStatus(code: 404, text: "no"))
        #expect(response.encoded() == [0x0A, 1, 0x72, 0x50, 0x94, 0x03, 0x5A, 2, 0x6E, 0x6F])
        #expect(try StatusResponse(parsing: response.encoded()) == response)
        #expect(throws: ProtobufError.malformed) { try StatusResponse(parsing: []) }
        let push = FilterPush(message: ReceivedMessage(message: message, pubsubTopic: topic))
        #expect(try FilterPush(parsing: [0x0A, UInt8(messageBytes.count)] + messageBytes + [0x12, 16] + topicField) == push)
        #expect(try FilterPush(parsing: push.encoded()) == push)
        #expect(throws: ProtobufError.malformed) { try FilterPush(parsing: [0x12, 16] + topicField) }
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>) func damagedMessagesNeverTrap(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let received = ReceivedMessage(message: message, pubsubTopic: topic)
        let whole: [[UInt8]] = [
            WakuMetadata(clusterID: 16, shards: [1, 2, 3]).encoded(),
            StoreResponse(
                requestID: "q", status: WakuStatus(code: 200), entries: [.init(hash: received.hash, message: received)], cursor: [1]
            ).encoded(),
            StatusResponse(requestID: "r", status: WakuStatus(code: 200, text: "OK"), relayPeerCount: 1).encoded(),
            OldLightpushResponse(requestID: "r", isSuccess: true, text: "no").encoded(),
            FilterPush(message: received).encoded(),
        ]
        for _ in 0..<200 {
            for bytes in whole {
                let damaged = generator.damaged(bytes)
                _ = try? WakuMetadata(parsing: damaged)
                _ = try? StoreResponse(parsing: damaged)
                _ = try? StatusResponse(parsing: damaged)
                _ = try? OldLightpushResponse(parsing: damaged)
                _ = try? FilterPush(parsing: damaged)
            }
        }
    }
}
