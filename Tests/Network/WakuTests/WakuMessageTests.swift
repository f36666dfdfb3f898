import TestSupport
import Testing
import Core
import Waku

@Suite struct WakuMessageTests {
    private static let topic = ContentTopic(rawValue: "/waku/1/0x01020304/rfc26")

    @Test(arguments: StatusGoVectors.recorded.primitives.wakuMessageHash)
    func hashesOfNegativeZeroAndLargeTimestampsAreTheRecordedOnes(_ recorded: StatusGoVectors.MessageHash) throws {
        let message = try WakuMessage(parsing: recorded.proto.bytes)
        #expect(message.payload == recorded.payload.bytes)
        #expect(message.contentTopic.rawValue == recorded.contentTopic)
        #expect(message.timestamp.rawValue == recorded.timestamp)
        #expect(message.version == 1)
        #expect(message.meta == [])
        #expect(message.hash(on: PubsubTopic(rawValue: recorded.pubsubTopic)).bytes == recorded.hash.bytes)
    }

    @Test func recordedTimestampsCoverTheSigns() {
        let timestamps = StatusGoVectors.recorded.primitives.wakuMessageHash.map(\.timestamp)
        #expect(timestamps.contains(0) && timestamps.contains { $0 < 0 } && timestamps.contains { $0 > 1 << 53 })
    }

    @Test func everyRecordedMessageIsReadAsItWasSent() throws {
        var count = 0
        for recorded in StatusGoVectors.recorded.messages {
            guard let waku = recorded.wakuMessage, let proto = waku.proto else { continue }
            let message = try WakuMessage(parsing: proto.bytes)
            #expect(message.payload == waku.payload.bytes)
            #expect(message.contentTopic.rawValue == recorded.contentTopic)
            #expect(try WakuMessage(parsing: message.encoded()) == message)
            count += 1
            guard let hash = waku.hash, let topic = recorded.pubsubTopic else { continue }
            #expect(message.timestamp.rawValue == waku.timestamp)
            #expect(message.version == waku.version)
            #expect(message.ephemeral == waku.ephemeral)
            #expect(message.meta == waku.meta?.bytes)
            let received = ReceivedMessage(message: message, pubsubTopic: PubsubTopic(rawValue: topic))
            #expect(received.hash == message.hash(on: received.pubsubTopic))
            #expect(received.hash.bytes == hash.bytes)
        }
        #expect(count > 160)
    }

    @Test(arguments: [Int64.min, -1, 0, 1, 1_795_229_374_925_902_307, .max])
    func everyFieldComesBackAsItWasEncoded(_ time: Int64) throws {
        var message = WakuMessage(payload: [0, 1, 2], contentTopic: Self.topic, version: .max, timestamp: Timestamp(rawValue: time))
        message.meta = [UInt8](repeating: 7, count: 64)
        message.ephemeral = true
        #expect(try WakuMessage(parsing: message.encoded()) == message)
    }

    @Test func fieldsAreEncodedByTheirNumbersAndTimesAsZigZag() {
        let message = WakuMessage(payload: [5], contentTopic: ContentTopic(rawValue: "t"), timestamp: Timestamp(rawValue: -2), meta: [6])
        #expect(message.encoded() == hex("0a0105 120174 1801 5003 5a0106"))
        var ephemeral = message
        ephemeral.ephemeral = true
        #expect(ephemeral.encoded() == hex("0a0105 120174 1801 5003 5a0106 f80101"))
    }

    @Test func everyPartOfAMessageChangesItsHash() {
        let message = WakuMessage(payload: [1], contentTopic: Self.topic, timestamp: Timestamp(rawValue: 1), meta: [1])
        let topic = PubsubTopic.statusDefault
        var hashes: Set = [message.hash(on: topic), message.hash(on: PubsubTopic(rawValue: "/waku/2/rs/16/64"))]
        for change: (inout WakuMessage) -> Void in [
            { $0.payload = [2] }, { $0.contentTopic = ContentTopic(rawValue: "/waku/1/0x01020305/rfc26") }, { $0.meta = [2] },
            { $0.timestamp = Timestamp(rawValue: 2) },
        ] {
            var changed = message
            change(&changed)
            hashes.insert(changed.hash(on: topic))
        }
        #expect(hashes.count == 6)
        var ephemeral = message
        ephemeral.ephemeral = true
        #expect(ephemeral.hash(on: topic) == message.hash(on: topic))
    }

    @Test func unknownFieldsAndTheRateLimitProofAreIgnored() throws {
        let message = WakuMessage(payload: [1], contentTopic: Self.topic, timestamp: Timestamp(rawValue: 1))
        // Field 21, the proof; field 99 of each wire type.
        let more = hex("aa0103010203 980601 9106 0102030405060708 9a0601ff 9d06 01020304")
        #expect(try WakuMessage(parsing: message.encoded() + more) == message)
    }

    /// As nwaku counts: 32 bytes are for other fields.
    @Test func messageThatNodesWouldRefuseHasAFlaw() {
        let room = WakuMessage.maximumByteCount - Self.topic.rawValue.utf8.count - 32
        var message = WakuMessage(payload: [UInt8](repeating: 0, count: room), contentTopic: Self.topic, timestamp: Timestamp(rawValue: 1))
        message.meta = [UInt8](repeating: 0, count: 64)
        #expect(message.flaw == nil)
        message.payload.append(0)
        #expect(message.flaw == "message size exceeded maximum of \(WakuMessage.maximumByteCount) bytes")
        message.meta.append(0)
        #expect(message.flaw == "meta is longer than 64 bytes")
        message.contentTopic = ContentTopic(rawValue: "")
        #expect(message.flaw == "content topic is empty")
        message.payload = []
        #expect(message.flaw == "payload is empty")
    }

    /// Numbers 2^29 - 1, 2^29 and 0.
    @Test(arguments: [("f8ffffff0f", []), ("8080808010", .goWaku), ("00", .goWaku)] as [(String, WakuMessageFields.Decoders)])
    func goRefusesFieldNumbersFrom2To29AndZero(tag: String, refusing: WakuMessageFields.Decoders) throws {
        let message = WakuMessage(payload: [1], contentTopic: Self.topic, timestamp: Timestamp(rawValue: 1))
        #expect(try WakuMessageFields(parsing: message.encoded() + hex(tag) + [0]).refusedBy == refusing)
    }

    @Test func limitsAreThoseOfTheNetwork() throws {
        var message = WakuMessage(payload: [], contentTopic: Self.topic, timestamp: Timestamp(rawValue: 1))
        message.meta = [UInt8](repeating: 0, count: 65)
        #expect(throws: ProtobufError.tooMany) { try WakuMessage(parsing: message.encoded()) }
        message.meta = []
        let room = WakuMessage.maximumByteCount - message.encoded().count
        message.payload = [UInt8](repeating: 0, count: room - 4)
        #expect(message.encoded().count == WakuMessage.maximumByteCount)
        #expect(try WakuMessage(parsing: message.encoded()).payload.count == room - 4)
        message.payload.append(0)
        #expect(throws: ProtobufError.tooMany) { try WakuMessage(parsing: message.encoded()) }
    }

    @Test func aTopicThatIsNotUTF8IsRefused() {
        #expect(throws: ProtobufError.notUTF8) { try WakuMessage(parsing: hex("1202c328")) }
    }

    @Test func aNULDoesNotEndATopic() throws {
        #expect(try WakuMessage(parsing: hex("1203610062")).contentTopic.rawValue == "a\0b")
    }

    @Test func damagedMessagesNeverTrap() throws {
        let recorded = try #require(StatusGoVectors.recorded.primitives.wakuMessageHash.last?.proto.bytes)
        for count in recorded.indices { _ = try? WakuMessage(parsing: Array(recorded.prefix(count))) }
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<3000 {
            _ = try? WakuMessage(parsing: generator.damaged(recorded))
            _ = try? WakuMessage(parsing: generator.bytes(Int.random(in: 0..<40, using: &generator)))
        }
    }
}
