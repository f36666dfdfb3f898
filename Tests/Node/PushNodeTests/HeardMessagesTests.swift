import Core
import NodeAssembly
import Storage
import StoreSQLite
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Cursors are stored up to the last message that was heard")
struct HeardMessagesTests {
    private let topic = PubsubTopic.statusDefault
    private let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")
    private let time = Timestamp(rawValue: 1_800_000_000_123_456_789)

    private func message(at time: Timestamp) -> ReceivedMessage {
        let message = WakuMessage(payload: [1], contentTopic: ContentTopic(TopicTag(rawValue: 99)), timestamp: time)
        return ReceivedMessage(message: message, pubsubTopic: topic)
    }

    @Test("Before the first message, the stored cursors or the start")
    func nothing() {
        let heard = HeardMessages(after: [topic: time], startedAt: time + .seconds(100))
        let seen = time + .seconds(200)
        #expect(heard.limit([topic: seen, other: seen]) == [topic: time, other: time + .seconds(100)])
        #expect(heard.limit([:]) == [:])
        heard.note([], at: seen)
        #expect(heard.limit([topic: seen]) == [topic: time])
    }

    @Test("A message counts up to its own time, and not beyond the present; missing messages hold the cursor back further")
    func messages() {
        let heard = HeardMessages(after: [topic: time], startedAt: time)
        let now = time + .seconds(1000)
        // Found in a store, from before the start.
        heard.note([message(at: time - .seconds(50))], at: now)
        #expect(heard.limit([topic: now]) == [topic: time])
        heard.note([message(at: time + .seconds(10)), message(at: time + .seconds(5))], at: now)
        #expect(heard.limit([topic: now, other: time + .seconds(3)]) == [topic: time + .seconds(10), other: time + .seconds(3)])
        heard.note([message(at: now + .seconds(9999))], at: now)
        #expect(heard.limit([topic: now + .seconds(60)]) == [topic: now])
        // Of others.
        heard.note(until: now + .seconds(30))
        #expect(heard.limit([topic: now + .seconds(60)]) == [topic: now + .seconds(30)])
    }

    @Test("While the relay delivers nothing, a node stores the cursor that it began with")
    func silentRelay() async throws {
        let (identity, folder) = (PrivateKey.generate(), try TemporaryFolder())
        func cursor() throws -> Timestamp? {
            let store = try NodeAssembly.existingStore(in: folder.path, of: identity)
            defer { try? store.close() }
            return try store.read(RelayCursors.read(of: [.statusDefault]))[.statusDefault]
        }
        let last = Mutex(Timestamp(rawValue: 0))
        try await withFedNode(identity, folder.path, ScriptedGorush()) { _, relay in
            relay.missNothing()
            let fed = message(at: .now()).message
            last.withLock { $0 = fed.timestamp }
            await relay.feed([fed])
        }
        let time = last.withLock(\.self)
        #expect(try cursor() == time)
        try await withFedNode(identity, folder.path, ScriptedGorush()) { _, relay in relay.missNothing() }
        #expect(try cursor() == time)
    }
}
