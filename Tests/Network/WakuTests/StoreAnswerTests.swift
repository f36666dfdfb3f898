import Testing

import Core
@testable import Waku

struct StoreAnswerTests {
    private static let hash = String(repeating: "ab", count: 32)

    private func read(_ text: String) -> StoreAnswer? { StoreAnswer(json: Array(text.utf8)) }

    @Test func readsEntriesStatusAndCursor() throws {
        let answer = try #require(
            read(
                """
                {"requestId":"q","statusCode":200,"statusDesc":"O\\u004B","messages":[7,{"messageHash":"0x\(Self.hash)","message":
                {"payload":"AQ==","contentTopic":"/a","version":1,"timestamp":1800000000123456789},"pubsubTopic":"/t","x":[{}]},
                {"messageHash":"0x00","message":{"payload":"?"},"pubsubTopic":1},{}],"paginationCursor":"0xab","more":{"a":[1]}}
                """))
        #expect(answer.status == 200)
        #expect(answer.text == "OK")
        #expect(answer.cursor == "0xab")
        let message = WakuMessage(
            payload: [1], contentTopic: ContentTopic(rawValue: "/a"), version: 1,
            timestamp: Timestamp(rawValue: 1_800_000_000_123_456_789))
        #expect(
            answer.entries == [
                StoreAnswer.Entry(
                    hash: MessageHash(bytes: [UInt8](repeating: 0xAB, count: 32)), message: message,
                    pubsubTopic: PubsubTopic(rawValue: "/t")),
                StoreAnswer.Entry(), StoreAnswer.Entry(),
            ])
    }

    @Test(arguments: ["{}", #"{"messages":null,"paginationCursor":null,"statusCode":null}"#, #" {"messages":[],"paginationCursor":""} "#])
    func absentAndNullMembersAreEmpty(text: String) throws {
        let answer = try #require(read(text))
        #expect(answer.entries.isEmpty && answer.cursor == nil && answer.status == nil)
    }

    @Test(arguments: [
        "", "null", "[]", "{", #"{"messages":{}}"#, #"{"messages":[}"#, #"{"messages":[1,]}"#, #"{"statusCode":"200"}"#,
        #"{"statusCode":1e30}"#, #"{"paginationCursor":7}"#, #"{"statusDesc":[]}"#, "{} x", #"{"messages":["#,
        #"{"messages":[{"message":{"payload":}}]}"#, #"{"messages":"# + String(repeating: "[", count: 5000),
        #"{"x":"# + String(repeating: "{\"a\":", count: 5000),
    ])
    func isNoAnswer(text: String) {
        #expect(read(text) == nil)
    }

    @Test func moreThanAPageOrALongCursorIsRefused() {
        func entries(_ count: Int) -> String { #"{"messages":["# + Array(repeating: "{}", count: count).joined(separator: ",") + "]}" }
        #expect(read(entries(StoreAnswer.entryLimit))?.entries.count == StoreAnswer.entryLimit)
        #expect(read(entries(StoreAnswer.entryLimit + 1)) == nil)
        #expect(read(#"{"messages":["# + Array(repeating: "7", count: 101).joined(separator: ",") + "]}") == nil)
        func cursor(_ count: Int) -> String { #"{"paginationCursor":"\#(String(repeating: "a", count: count))"}"# }
        #expect(read(cursor(StoreAnswer.cursorByteLimit))?.cursor?.count == StoreAnswer.cursorByteLimit)
        #expect(read(cursor(StoreAnswer.cursorByteLimit + 1)) == nil)
    }

    @Test func longSkippedValuesAreRefused() {
        func answer(_ count: Int) -> String { #"{"x":["# + Array(repeating: "1", count: count).joined(separator: ",") + "]}" }
        #expect(read(answer(100_000)) != nil)
        #expect(read(answer(JSONScan.skippedByteLimit)) == nil)
    }

    /// Truncated or altered answers never cause a trap.
    @Test func damagedAnswers() {
        let text = Array(
            #"{"statusCode":200,"messages":[{"messageHash":"0x\#(Self.hash)","message":{"payload":"AQ==","contentTopic":"/a"}}]}"#.utf8)
        for end in text.indices { #expect(StoreAnswer(json: Array(text[..<end])) == nil) }
        for index in text.indices {
            for byte in [0, 0x22, 0x5B, 0x5C, 0x7B, 0x7D, 0xFF] as [UInt8] {
                var altered = text
                altered[index] = byte
                _ = StoreAnswer(json: altered)
            }
        }
    }

    @Test func queriesCoverWhatTheyAskAbout() {
        let topic = ContentTopic(rawValue: "/a")
        let query = StoreQuery(pubsubTopic: .statusDefault, contentTopics: [topic])
        func received(_ topic: ContentTopic, _ pubsubTopic: PubsubTopic) -> ReceivedMessage {
            ReceivedMessage(
                message: WakuMessage(payload: [1], contentTopic: topic, timestamp: Timestamp(rawValue: 1)), pubsubTopic: pubsubTopic)
        }
        #expect(query.covers(received(topic, .statusDefault)))
        #expect(!query.covers(received(ContentTopic(rawValue: "/b"), .statusDefault)))
        #expect(!query.covers(received(topic, PubsubTopic(rawValue: "/waku/2/rs/16/33"))))
        #expect(StoreQuery().covers(received(topic, PubsubTopic(rawValue: "/any"))))
    }
}
