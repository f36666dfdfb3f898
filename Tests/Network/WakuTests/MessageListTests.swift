import Foundation
import TestSupport
import Testing

import Core
@testable import Waku

struct MessageListTests {
    private func read(_ text: String) -> MessageList? { MessageList(json: Array(text.utf8)) }

    @Test func readsMembersInAnyOrderWithWhiteSpaceEscapesAndUnknownOnes() throws {
        let list = try #require(
            read(
                """
                 [ {"x":{"a":[1,{"b":"]}\\\\\\""}],"payload":"no"},"ephemeral" : true , "timestamp":1800000000123456789,
                "content\\u0054opic":"\\/a\\u00e9\\ud83d\\ude00","payload":"AQ\\u003d=","version":1,"meta":"\\/w==","y":null}\t]\r\n
                """))
        let expected = WakuMessage(
            payload: [1], contentTopic: ContentTopic(rawValue: "/aé😀"), version: 1,
            timestamp: Timestamp(rawValue: 1_800_000_000_123_456_789), meta: [0xFF], ephemeral: true)
        #expect(list.messages == [expected])
        #expect(list.elementCount == 1)
    }

    @Test(arguments: [
        "null", " null ", "[]", "[ ]",
    ])
    func absentAndNullMembersAreEmpty(text: String) throws {
        let list = try #require(read(text))
        #expect(list.messages == [] && list.elementCount == 0)
    }

    @Test(arguments: [
        "", " ", "{}", "true", "nul", "[", "[1", "[1,", "[1,]", "[}", "[]]", "[] x", "[{]", "[{\"a\"}]", "[{\"a\":}]", "[\"", "[\"\\\"]",
        "[{\"payload\":\"AQ==\",}]", String(repeating: "[", count: 5000), "[" + String(repeating: "{\"a\":", count: 5000),
    ])
    func isNoList(text: String) {
        #expect(read(text) == nil)
    }

    /// Each is one element that is not a message; the one after it is.
    @Test(arguments: [
        "1", "\"x\"", "null", "[]", "{}", #"{"payload":"AQ=="}"#, #"{"contentTopic":"/a"}"#, #"{"payload":"AQ==","contentTopic":7}"#,
        #"{"payload":["AQ=="],"contentTopic":"/a"}"#, #"{"payload":"AQ=","contentTopic":"/a"}"#, #"{"payload":"A===","contentTopic":"/a"}"#,
        #"{"payload":"AQ==AQ==","contentTopic":"/a"}"#, #"{"payload":"AQ-_","contentTopic":"/a"}"#,
        #"{"payload":"====","contentTopic":"/a"}"#,
        #"{"payload":"AQ==","contentTopic":"\ud800"}"#, #"{"payload":"AQ==","contentTopic":"\x"}"#,
        #"{"payload":"AQ==","contentTopic":"/a","timestamp":9223372036854775808}"#,
        #"{"payload":"AQ==","contentTopic":"/a","timestamp":1e30}"#, #"{"payload":"AQ==","contentTopic":"/a","timestamp":"1"}"#,
        #"{"payload":"AQ==","contentTopic":"/a","version":4294967296}"#, #"{"payload":"AQ==","contentTopic":"/a","version":-1}"#,
        #"{"payload":"AQ==","contentTopic":"/a","ephemeral":1}"#, #"{"payload":"AQ==","contentTopic":"/a","meta":false}"#,
    ])
    func isNoMessage(element: String) throws {
        let list = try #require(read("[\(element), {\"payload\":\"AQ==\",\"contentTopic\":\"/a\",\"timestamp\":-9223372036854775808}]"))
        #expect(list.elementCount == 2)
        #expect(list.messages.map(\.timestamp.rawValue) == [.min])
    }

    @Test func messagesOnUnwantedTopicsAreNotDecoded() throws {
        let element = { (topic: String, payload: String) in #"{"payload":"\#(payload)","contentTopic":"\#(topic)"}"# }
        let elements = [
            element("/waku/1/0x00000001/rfc26", "AQ=="), element("/waku/1/0x00000002/rfc26", "!"),
            element("/toy-chat/2/huilong/proto", "AQ=="),
            element("\\/waku\\/1\\/0x00000001\\/rfc26", "Ag=="), element("/waku/1/0x00000001/rfc26", "!"),
        ]
        let text = "[" + elements.joined(separator: ",") + "]"
        let list = try #require(MessageList(json: Array(text.utf8)) { $0 == TopicTag(rawValue: 1) })
        #expect(list.messages.map(\.payload) == [[1], [2]])
        #expect(list.unwantedCount == 2)
        #expect(list.elementCount == 5)
    }

    @Test func encodedMessagesAreDecodedUnchanged() throws {
        var message = WakuMessage(
            payload: [1, 2, 3], contentTopic: ContentTopic(rawValue: "/\"\\\u{1}é"), version: 7, timestamp: Timestamp(rawValue: .max),
            meta: [1], ephemeral: true)
        for _ in 0..<2 {
            let json = MessageJSON.encode(message)
            #expect(MessageList(json: Array("[".utf8) + json + Array("]".utf8))?.messages == [message])
            let decoded = try JSONDecoder().decode(MessageJSON.self, from: Data(json))
            #expect(decoded.message(defaultTimestamp: Timestamp(rawValue: 0)) == message)
            message = WakuMessage(payload: [], contentTopic: ContentTopic(rawValue: ""), timestamp: Timestamp(rawValue: .min))
        }
    }

    // MARK: Against Foundation's decoder

    /// Valid texts give the same result. For damaged ones, this decoder accepts more: a name or text outside of messages may be broken, and
    /// of members with the same name the last counts. But it counts the same number of elements, and never traps.
    @Test(arguments: 1...20)
    func agreesWithFoundation(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for round in 0..<150 {
            var text = randomList(&random)
            let isDamaged = round % 3 == 0
            if isDamaged { text = random.damaged(text) }
            let list = MessageList(json: text)
            guard let expected = try? JSONDecoder().decode([LenientElement<MessageJSON>]?.self, from: Data(text)) else { continue }
            let messages = expected.compactMap { $0.value?.message(defaultTimestamp: Timestamp(rawValue: 0)) }
            #expect(
                (isDamaged || list?.messages == messages) && list?.elementCount == expected.count,
                "seed \(seed), round \(round): \(String(decoding: text, as: UTF8.self).debugDescription)")
        }
    }

    private func randomList(_ random: inout SeededGenerator) -> [UInt8] {
        let elements = (0..<Int.random(in: 0...4, using: &random)).map { _ in randomElement(&random) }
        return Array((space(&random) + "[" + elements.joined(separator: ",") + "]" + space(&random)).utf8)
    }

    private func randomElement(_ random: inout SeededGenerator) -> String {
        if Int.random(in: 0..<10, using: &random) == 0 { return space(&random) + randomValue(&random, depth: 0) + space(&random) }
        let topic = random.pick(["/waku/1/0x01020304/rfc26", "/é\"\\😀/\u{7}", ""])
        var members: [(String, String)] = [
            ("payload", string(Data(random.bytes(Int.random(in: 0...40, using: &random))).base64EncodedString(), &random)),
            ("contentTopic", string(topic, &random)),
            ("timestamp", String(Int64(bitPattern: random.next()))),
        ]
        if Bool.random(using: &random) { members.append(("version", String(UInt32.random(in: 0...3, using: &random)))) }
        if Bool.random(using: &random) { members.append(("meta", string(Data(random.bytes(3)).base64EncodedString(), &random))) }
        if Bool.random(using: &random) { members.append(("ephemeral", random.pick(["true", "false", "null"]))) }
        for number in 0..<Int.random(in: 0...2, using: &random) { members.append(("other \(number)", randomValue(&random, depth: 0))) }
        if Int.random(in: 0..<8, using: &random) == 0 {
            members[Int.random(in: members.indices, using: &random)].1 = randomValue(&random, depth: 0)
        }
        if Int.random(in: 0..<8, using: &random) == 0 { members.remove(at: Int.random(in: members.indices, using: &random)) }
        members.shuffle(using: &random)
        let text = members.map { space(&random) + string($0.0, &random) + space(&random) + ":" + space(&random) + $0.1 + space(&random) }
        return "{" + text.joined(separator: ",") + "}"
    }

    private func randomValue(_ random: inout SeededGenerator, depth: Int) -> String {
        switch Int.random(in: 0..<(depth < 4 ? 8 : 6), using: &random) {
        case 0: return "null"
        case 1: return Bool.random(using: &random) ? "true" : "false"
        case 2: return String(Int64(bitPattern: random.next()))
        case 3: return random.pick(["0", "-0", "1.0", "12e2", "1.5", "1e30", "18446744073709551616", "-1"])
        case 4, 5:
            let text = random.pick(["", "AQ==", "]}{[,:\"", "\\"])
            return string(text, &random)
        case 6:
            return "["
                + (0..<Int.random(in: 0...3, using: &random)).map { _ in randomValue(&random, depth: depth + 1) }
                .joined(separator: ",") + "]"
        default:
            return "{"
                + (0..<Int.random(in: 0...3, using: &random)).map { "\"\($0)\":" + randomValue(&random, depth: depth + 1) }
                .joined(separator: ", ") + "}"
        }
    }

    private func space(_ random: inout SeededGenerator) -> String {
        random.pick(["", "", "", " ", "\n", "\t ", "\r\n"])
    }

    /// Escaped where necessary, and sometimes where not.
    private func string(_ text: String, _ random: inout SeededGenerator) -> String {
        var result = "\""
        for unit in text.utf16 {
            let isSpecial = unit < 0x20 || unit == 0x22 || unit == 0x5C
            if unit == 0x2F, Bool.random(using: &random) {
                result += "\\/"
            } else if isSpecial || unit > 0x7E || Int.random(in: 0..<30, using: &random) == 0 {
                let digits = String(unit, radix: 16, uppercase: Bool.random(using: &random))
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            } else {
                result.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            }
        }
        return result + "\""
    }
}
