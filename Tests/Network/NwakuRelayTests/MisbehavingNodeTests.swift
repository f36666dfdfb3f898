import TestSupport
import Synchronization
import Testing
import Core
import Waku

@testable import NwakuRelay

/// Tests with nodes that answer unexpectedly.
@Suite(.timeLimit(.minutes(5))) struct MisbehavingNodeTests {
    private static let payload = "AQID"

    @Test(arguments: [404, 503, 505, 500])
    func publishesByRelayWhenLightpushFails(status: Int) async throws {
        let calls = Mutex<[String]>([])
        try await ScriptedNode.serve { call, _ in
            calls.withLock { $0.append(call) }
            return call.contains("lightpush") ? (status, "no") : nil
        } _: { port in
            let relay = try makeRelay(port: port)
            try await relay.publish(message(1), on: .statusDefault)
            try await relay.publish(message(2), on: .statusDefault)
        }
        let push = "POST /lightpush/v3/message"
        let publish = "POST /relay/v1/messages/%2Fwaku%2F2%2Frs%2F16%2F32"
        // A node that does not serve lightpush is not asked for every message.
        let isMissing = status == 404 || status == 503
        #expect(calls.withLock { $0 } == [push, publish] + (isMissing ? [publish] : [push, publish]))
    }

    /// Nobody subscribed the node to the topic, as a command-line client does not: only lightpush can publish on it.
    @Test(arguments: [503, 505])
    func asksLightpushAgainWhereRelayCannotPublish(status: Int) async throws {
        let calls = Mutex<[String]>([])
        let isSlow = Mutex(true)
        try await ScriptedNode.serve { call, _ in
            calls.withLock { $0.append(call) }
            if call.contains("lightpush") { return isSlow.withLock(\.self) ? (status, "busy") : (200, #"{"relayPeerCount": 1}"#) }
            return (400, "Failed to publish: not subscribed to topic /waku/2/rs/16/32")
        } _: { port in
            let relay = try makeRelay(port: port)
            await #expect {
                try await relay.publish(message(1), on: .statusDefault)
            } throws: { error in
                let error = error as? RelayError
                return error?.code == .unavailable && error?.message.contains("\(status) to /lightpush/v3/message: busy") == true
            }
            isSlow.withLock { $0 = false }
            #expect(try await relay.publish(message(1), on: .statusDefault) == .confirmed)
        }
        let push = "POST /lightpush/v3/message"
        #expect(calls.withLock { $0 } == [push, "POST /relay/v1/messages/%2Fwaku%2F2%2Frs%2F16%2F32", push])
    }

    @Test func aMessageThatTheNodeHasAlreadyIsPublished() async throws {
        let calls = Mutex<[String]>([])
        try await ScriptedNode.serve { call, _ in
            calls.withLock { $0.append(call) }
            return call.contains("lightpush") ? (500, "Failed to publish: Dropping already-seen message") : nil
        } _: { port in
            let relay = try makeRelay(port: port)
            #expect(try await relay.publish(message(1), on: .statusDefault) == .unconfirmed(canBeLookedUp: true))
        }
        #expect(calls.withLock { $0 } == ["POST /lightpush/v3/message"])
    }

    /// Its last answer may be hours old.
    @Test func theClockOfANodeThatDoesNotAnswerIsUnknown() async throws {
        let isDown = Mutex(false)
        try await ScriptedNode.serve { _, _ in
            isDown.withLock(\.self) ? (500, "no") : nil
        } _: { port in
            let relay = try makeRelay(port: port)
            try await during({ await relay.run { _ in } }) {
                try await eventually { relay.clockAhead != nil }
                #expect(relay.state == .attached)
                isDown.withLock { $0 = true }
                try await eventually { relay.state != .attached }
                #expect(relay.clockAhead == nil)
            }
        }
    }

    @Test(arguments: [
        (400, "Message size exceeded maximum of 153600 bytes", RelayError.Code.refused),
        (400, "Failed to publish: Node not subscribed to topic", .unavailable),
        (503, "not ready", .unavailable), (404, "", .unavailable),
    ])
    func tellsWhetherToTryAgain(status: Int, text: String, code: RelayError.Code) async throws {
        try await ScriptedNode.serve { call, _ in
            call.contains("lightpush") ? (404, "") : (status, text)
        } _: { port in
            let relay = try makeRelay(port: port)
            await #expect { try await relay.publish(message(1), on: .statusDefault) } throws: { ($0 as? RelayError)?.code == code }
        }
    }

    @Test func anUnreachableNodeIsUnavailable() async throws {
        let relay = try makeRelay(port: 1)
        await #expect { try await relay.publish(message(1), on: .statusDefault) } throws: { ($0 as? RelayError)?.code == .unavailable }
    }

    @Test func readsWhatCanBeReadAndKeepsNanoseconds() async throws {
        let large = String(repeating: "AAAA", count: (1 << 20) / 3)
        let poll = """
            [{"payload": "\(Self.payload)", "contentTopic": "/a", "timestamp": 1800000000123456789, "version": 1, "meta": "/w=="},
             {"payload": "!", "contentTopic": "/a"}, 7, null, {"contentTopic": "/a"}, {"payload": "", "contentTopic": "/a"},
             {"payload": "AQ==", "contentTopic": "/a", "timestamp": 1e30}, {"payload": "\(large)", "contentTopic": "/a"},
             {"payload": "\(Self.payload)", "contentTopic": "/b"}]
            """
        try await ScriptedNode.serve { _, _ in
            (200, poll)
        } _: { port in
            let poll = try await makeAPI(port: port).messages(on: .statusDefault)
            let expected = [
                WakuMessage(
                    payload: [1, 2, 3], contentTopic: ContentTopic(rawValue: "/a"), version: 1,
                    timestamp: Timestamp(rawValue: 1_800_000_000_123_456_789), meta: [0xFF]),
                WakuMessage(
                    payload: [1, 2, 3], contentTopic: ContentTopic(rawValue: "/b"), version: 0, timestamp: Timestamp(rawValue: 0)),
            ]
            #expect(poll.messages.map(\.message) == expected)
            #expect(poll.elementCount == 9)
        }
    }

    @Test func nullIsAnEmptyPoll() async throws {
        try await ScriptedNode.serve { _, _ in
            (200, "null")
        } _: { port in
            let poll = try await makeAPI(port: port).messages(on: .statusDefault)
            #expect(poll.elementCount == 0)
        }
    }

    @Test func anUnreadablePollDetaches() async throws {
        let polls = Mutex(0)
        try await ScriptedNode.serve { call, _ in
            guard call.hasPrefix("GET /relay") else { return nil }
            return polls.withLock { polls in
                polls += 1
                return polls == 1 ? (200, "<html>") : nil
            }
        } _: { port in
            let relay = try makeRelay(port: port)
            try await during({ await relay.run { _ in } }) {
                try await eventually { relay.state == .attached }
            }
        }
        #expect(polls.withLock { $0 } >= 2)
    }

    @Test func keepsAskingAStoreThatFails() async throws {
        // In turn: no answer, rate limited, an error within the response, a page with a broken element, and the last page.
        let answers: [(Int, String)] = [
            (412, "No suitable service peer & none discovered"), (429, ""), (200, #"{"statusCode": 500, "statusDesc": "oops"}"#),
            (
                200,
                """
                {"statusCode": 200, "messages": [7, {"messageHash": "0x00", "message": {"payload": "\(Self.payload)", "contentTopic": "\(topicA)",
                "timestamp": 1}, "pubsubTopic": "/waku/2/rs/16/32"}], "paginationCursor": "0xab"}
                """
            ),
            (200, #"{"statusCode": 200, "messages": []}"#),
        ]
        let asked = Mutex<[[String: String]]>([])
        try await ScriptedNode.serve { call, query in
            guard call.hasPrefix("GET /store") else { return nil }
            return asked.withLock { asked in
                asked.append(query)
                return answers[min(asked.count, answers.count) - 1]
            }
        } _: { port in
            let relay = try makeRelay(port: port, catchUpTopics: [topicA], lastSeen: .now() - .seconds(600))
            let inbox = Inbox()
            try await during({ await relay.run { inbox.deliver($0) } }) {
                try await eventually { asked.withLock { $0.count } >= answers.count }
                #expect(inbox.messages.map(\.message.payload) == [[1, 2, 3]])
            }
        }
        let queries = asked.withLock { $0 }
        #expect(queries.map { $0["cursor"] }.prefix(5) == [nil, nil, nil, nil, "0xab"])
        #expect(queries[0]["contentTopics"] == topicA.rawValue)
        #expect(queries[0]["includeData"] == "true")
    }

    /// A page of go-waku would look like an empty one.
    @Test func aStoreWithMessagesOfAnotherFormIsNotAnEmptyOne() async throws {
        let answer = """
            {"request_id": "1", "status_code": 200, "messages": [{"message_hash": "wQQIz0SO1cmHuOBCYJoFDDZSNA0EfVkkLIRGBsgRe2E=", "message":
            {"payload": "\(Self.payload)", "contentTopic": "\(topicA)", "version": 0, "timestamp": "1716368075453098240"},
            "pubsub_topic": "/waku/2/rs/16/32"}]}
            """
        try await ScriptedNode.serve { call, _ in
            call.hasPrefix("GET /store") ? (200, answer) : nil
        } _: { port in
            let api = try makeAPI(port: port)
            for topics in [[topicA], []] {
                await #expect { try await api.query(StoreQuery(pubsubTopic: .statusDefault, contentTopics: topics)) } throws: {
                    ($0 as? NwakuAPIError)?.code == .unreadable
                }
            }
            let lastSeen = Timestamp.now() - .seconds(600)
            let failures = Mutex(0)
            let relay = try makeRelay(
                port: port, catchUpTopics: [topicA], lastSeen: lastSeen,
                report: { event in
                    if case .catchUpFailed = event { failures.withLock { $0 += 1 } }
                })
            try await during({ await relay.run { _ in } }) {
                try await eventually { failures.withLock { $0 } > 0 }
                #expect(try #require(relay.seenUntil[.statusDefault]) <= lastSeen)
            }
        }
    }

    /// Anyone can fill a page of a query without content topics with messages whose content topics are not text.
    @Test func aPageOfUnreadableMessagesIsSkippedWhereAnyoneMayHavePublishedThem() async throws {
        let hash = MessageHash(bytes: Array(repeating: 7, count: 32))
        let entry = #"{"messageHash": "0x\#(hash.hex)", "message": {"payload": 7}}"#
        let answer = #"{"statusCode": 200, "messages": [\#(entry)], "paginationCursor": "0xab"}"#
        try await ScriptedNode.serve { call, _ in
            call.hasPrefix("GET /store") ? (200, answer) : nil
        } _: { port in
            let api = try makeAPI(port: port)
            let page = try await api.query(StoreQuery(pubsubTopic: .statusDefault))
            #expect(page.messages.isEmpty && page.unreadableCount == 1 && page.cursor == "0xab")
            await #expect(throws: NwakuAPIError.self) {
                try await api.query(StoreQuery(pubsubTopic: .statusDefault, contentTopics: [topicA]))
            }
            #expect(try await api.query(StoreQuery(hashes: [hash], includesMessages: false)).hashes == [hash])
        }
    }

    @Test func unreadableMessagesOfPollsAndStoreAreLoggedOnceEach() async throws {
        let log = RecordedLog()
        let polls = Mutex(0)
        let readable = #"{"payload": "\#(Self.payload)", "contentTopic": "\#(topicA)", "timestamp": 1}"#
        try await ScriptedNode.serve { call, _ in
            if call.hasPrefix("GET /store") {
                return (200, #"{"statusCode": 200, "messages": [{"message": \#(readable), "pubsubTopic": "/waku/2/rs/16/32"}, 7]}"#)
            }
            guard call.hasPrefix("GET /relay") else { return nil }
            polls.withLock { $0 += 1 }
            return (200, "[7, \(readable)]")
        } _: { port in
            let relay = try makeRelay(port: port, catchUpTopics: [topicA], lastSeen: .now() - .seconds(600), logger: log.logger)
            try await during({ await relay.run { _ in } }) {
                try await eventually { polls.withLock { $0 } >= 3 && log.contains("source=store") }
            }
        }
        let warnings = log.lines.filter { $0.hasPrefix("warning node returned unreadable messages; they are skipped messages=1") }
        #expect(warnings.map { $0.contains("source=store") }.sorted { !$0 && $1 } == [false, true])
    }

    /// A node can't choose the pubsub topic of answers, which are published on the topic of the received message.
    @Test func messagesThatWereNotAskedForAreLeftOut() async throws {
        func entry(_ payload: String, _ topic: ContentTopic, _ pubsubTopic: String) -> String {
            #"{"message": {"payload": "\#(payload)", "contentTopic": "\#(topic)", "timestamp": 1}, "pubsubTopic": "\#(pubsubTopic)"}"#
        }
        let own = PubsubTopic.statusDefault.rawValue
        let entries = [
            entry("AQ==", topicA, "/waku/2/rs/16/33"), entry("Ag==", topicB, own), entry(Self.payload, topicA, own),
            entry("Aw==", topicA, ""),
        ]
        let hashes = [message(1), message(2)].map { $0.hash(on: .statusDefault) }
        let answer = entries.joined(separator: ",")
        try await ScriptedNode.serve { call, query in
            guard call.hasPrefix("GET /store") else { return nil }
            let listed = hashes.map { #"{"messageHash": "0x\#($0.hex)"}"# }.joined(separator: ",")
            return (200, #"{"statusCode": 200, "messages": [\#(query["hashes"] == nil ? answer : listed)]}"#)
        } _: { port in
            let api = try makeAPI(port: port)
            let page = try await api.query(StoreQuery(pubsubTopic: .statusDefault, contentTopics: [topicA]))
            #expect(page.messages.map(\.message.payload) == [[1, 2, 3]])
            #expect(try await api.query(StoreQuery(hashes: [hashes[1]], includesMessages: false)).hashes == [hashes[1]])
        }
    }

    /// A decoder would use many times as much memory for it.
    @Test func smallAnswersAreReadUpToASmallLimit() async throws {
        let long = String(repeating: " ", count: NwakuAPI.maximumSmallResponseByteCount)
        try await ScriptedNode.serve { call, _ in
            call.hasPrefix("GET /relay") ? (200, long + "[]") : (200, long + #"{"nodeHealth": "READY", "messages": []}"#)
        } _: { port in
            let api = try makeAPI(port: port)
            await #expect { try await api.health() } throws: { ($0 as? NwakuAPIError)?.code == .tooLong }
            await #expect { try await api.query(StoreQuery(hashes: [], includesMessages: false)) } throws: {
                ($0 as? NwakuAPIError)?.code == .tooLong
            }
            #expect(try await api.query(StoreQuery(pubsubTopic: .statusDefault)).messages.isEmpty)
            #expect(try await api.messages(on: .statusDefault).elementCount == 0)
        }
    }

    /// Reduced to one line of printable ASCII, without escape sequences or characters that change the text direction.
    @Test func aNodesWordsAreShownAsPlainText() async throws {
        let words = "no\u{9b}31m \u{202e}peers\u{1b}[2J\u{7f}\r\nforged " + String(repeating: "x", count: 500)
        try await ScriptedNode.serve { _, _ in
            (500, words)
        } _: { port in
            let api = try makeAPI(port: port)
            await #expect { try await api.messages(on: .statusDefault) } throws: {
                ($0 as? NwakuAPIError)?.message == "the node answered 500 to /relay/v1/messages: no31m peers[2J"
            }
        }
    }

    @Test func anOversizedPageIsFetchedInSmallerOnes() async throws {
        let tooLong = String(repeating: " ", count: NwakuAPI.maximumResponseByteCount + 1)
        let page = """
            {"statusCode": 200, "messages": [{"messageHash": "0x00", "message": {"payload": "\(Self.payload)", "contentTopic": "\(topicA)",
            "timestamp": 1}, "pubsubTopic": "/waku/2/rs/16/32"}]}
            """
        try await ScriptedNode.serve { call, query in
            call.hasPrefix("GET /store") ? (200, query["pageSize"] == "10" ? page : tooLong) : nil
        } _: { port in
            let relay = try makeRelay(port: port, catchUpTopics: [topicA], lastSeen: .now() - .seconds(600))
            let inbox = Inbox()
            try await during({ await relay.run { inbox.deliver($0) } }) {
                try await eventually { inbox.messages.map(\.message.payload) == [[1, 2, 3]] }
            }
        }
    }

    @Test func waitsForANodeThatStarts() async throws {
        let calls = Mutex(0)
        try await ScriptedNode.serve { call, _ in
            let count = calls.withLock { calls in
                calls += 1
                return calls
            }
            return count < 5 ? (404, "/relay endpoints are not available while initializing.") : nil
        } _: { port in
            let relay = try makeRelay(port: port)
            try await during({ await relay.run { _ in } }) {
                try await eventually { relay.state == .attached }
            }
        }
    }

    @Test(arguments: [
        (200, #"{"nodeHealth": "READY", "protocolsHealth": [{"Relay": "READY"}, {"Store": "NOT_READY", "desc": "no peers"}, 7]}"#, "READY"),
        (501, "", "UNKNOWN"),
    ])
    func health(status: Int, body: String, expected: String) async throws {
        try await ScriptedNode.serve { _, _ in
            (status, body)
        } _: { port in
            let health = try await makeAPI(port: port).health()
            #expect(health.status == expected)
            #expect(health.protocols == (status == 200 ? ["Relay": "READY", "Store": "NOT_READY"] : [:]))
        }
    }

    /// A store that has a fresh cursor for each page.
    @Test func aStoreThatDoesNotEndIsAskedAgainAfterAPause() async throws {
        let count = Mutex(0)
        try await ScriptedNode.serve { _, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return (200, #"{"statusCode": 200, "messages": [], "paginationCursor": "0x\#(number + 10)"}"#)
        } _: { port in
            var configuration = NwakuStoreWatch.Configuration(address: try makeAPI(port: port).address, interval: .zero)
            configuration.pageLimit = 4
            configuration.unfinishedPause = ExponentialBackoff(initial: .milliseconds(600), maximum: .milliseconds(600))
            let watch = NwakuStoreWatch(configuration: configuration, contentTopics: [topicA], client: client, logger: quiet)
            let start = ContinuousClock.now
            try await during({ await watch.run { _ in } }) { try await eventually { watch.unfinishedSweepCount == 3 } }
            // Two pauses of at least half of the delay.
            #expect(start.duration(to: .now) >= .milliseconds(600))
            #expect(watch.state == .attached && count.withLock { $0 } >= 12)
            // By the date of its answers.
            #expect(watch.clockAhead.map { $0 > .seconds(-60) && $0 < .seconds(60) } == true)
        }
    }

    /// logos-delivery refuses time ranges of more than a day, which both ends must give.
    @Test func aWatchSinceMoreThanADayIsAnswered() async throws {
        let start = Timestamp.now() - .seconds(2 * 24 * 3600)
        try await ScriptedNode.serve { call, query in
            guard call.hasPrefix("GET /store") else { return nil }
            if let from = query["startTime"].flatMap({ Int64($0) }), let to = query["endTime"].flatMap({ Int64($0) }),
                to - from > 24 * 3600 * 1_000_000_000
            {
                return (400, "time range exceeds 24h")
            }
            return (200, #"{"statusCode": 200, "messages": []}"#)
        } _: { port in
            let configuration = NwakuStoreWatch.Configuration(address: try makeAPI(port: port).address, startTime: start, interval: .zero)
            let watch = NwakuStoreWatch(configuration: configuration, contentTopics: [topicA], client: client, logger: quiet)
            try await during({ await watch.run { _ in } }) { try await eventually { watch.state == .attached } }
        }
    }

    /// Clients add a topic for each question.
    @Test func onlyNewTopicsAreReadFromTheStart() async throws {
        let first = Timestamp.now() - .seconds(5000)
        let calls = Mutex<[(topics: String?, start: String?)]>([])
        try await ScriptedNode.serve { call, query in
            guard call.hasPrefix("GET /store") else { return nil }
            calls.withLock { $0.append((query["contentTopics"], query["startTime"])) }
            return (200, #"{"statusCode": 200, "messages": []}"#)
        } _: { port in
            let configuration = NwakuStoreWatch.Configuration(address: try makeAPI(port: port).address, startTime: first, interval: .zero)
            let watch = NwakuStoreWatch(configuration: configuration, contentTopics: [topicA], client: client, logger: quiet)
            try await during({ await watch.run { _ in } }) {
                try await eventually { calls.withLock { $0.count } >= 3 }
                watch.watch([topicB])
                try await eventually { calls.withLock { $0.contains { $0.topics?.contains("\(topicB)") == true } } }
                let count = calls.withLock { $0.count }
                try await eventually { calls.withLock { $0.count } >= count + 3 }
            }
        }
        let whole = calls.withLock { $0 }.filter { $0.start == "\(first.rawValue)" }.map(\.topics)
        #expect(whole == ["\(topicA)", "\(topicB)"])
    }

    /// A store with more messages than are read at once, the oldest first.
    @Test func theNextSweepGoesOnWhereThePageLimitEndedTheLast() async throws {
        let first = Timestamp.now() - .seconds(5000)
        let starts = Mutex<[String?]>([])
        try await ScriptedNode.serve { call, query in
            guard call.hasPrefix("GET /store") else { return nil }
            let number = starts.withLock { starts in
                starts.append(query["startTime"])
                return starts.count
            }
            let time = (first + .seconds(100 * number)).rawValue
            let message = #"{"payload": "\#(Self.payload)", "contentTopic": "\#(topicA)", "timestamp": \#(time)}"#
            let entry = #"{"messageHash": "0x00", "message": \#(message), "pubsubTopic": "/waku/2/rs/16/32"}"#
            return (200, #"{"statusCode": 200, "messages": [\#(entry)], "paginationCursor": "0x\#(number + 10)"}"#)
        } _: { port in
            var configuration = NwakuStoreWatch.Configuration(address: try makeAPI(port: port).address, startTime: first, interval: .zero)
            configuration.pageLimit = 2
            configuration.unfinishedPause = ExponentialBackoff(initial: .milliseconds(1), maximum: .milliseconds(1))
            let watch = NwakuStoreWatch(configuration: configuration, contentTopics: [topicA], client: client, logger: quiet)
            let inbox = Inbox()
            try await during({ await watch.run { inbox.deliver($0) } }) { try await eventually { inbox.messages.count >= 6 } }
        }
        let expected: [String?] = [0, 0, 140, 140, 340, 340].map { "\((first + .seconds($0)).rawValue)" }
        #expect(starts.withLock { Array($0.prefix(6)) } == expected)
    }
}
