import Synchronization
import Testing
import Waku

struct RelaySetTests {
    /// Answers as told, and hands over one message.
    private final class StubRelay: Relay {
        let state: RelayState
        let answer: RelayError?
        let published = Mutex<[WakuMessage]>([])

        init(state: RelayState = .attached, answer: RelayError? = nil) {
            self.state = state
            self.answer = answer
        }

        func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
            await deliver([ReceivedMessage(message: RelaySetTests.message, pubsubTopic: .statusDefault)])
        }

        func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) {
            if let answer { throw answer }
            published.withLock { $0.append(message) }
        }

        var publishedCount: Int { published.withLock { $0.count } }
    }

    private static let message = WakuMessage(payload: [1], contentTopic: ContentTopic(TopicTag(rawValue: 1)), timestamp: .now())
    private let unavailable = RelayError(code: .unavailable, message: "gone")
    private let refused = RelayError(code: .refused, message: "too large")

    @Test func publishesByTheFirstAttached() async throws {
        let relays = [StubRelay(state: .detached("gone")), StubRelay(), StubRelay()]
        try await RelaySet(relays).publish(Self.message, on: .statusDefault)
        #expect(relays.map(\.publishedCount) == [0, 1, 0])
    }

    @Test func fallsBackToTheNextAndToTheDetached() async throws {
        let relays = [StubRelay(state: .detached("gone")), StubRelay(answer: unavailable), StubRelay(answer: unavailable)]
        try await RelaySet(relays).publish(Self.message, on: .statusDefault)
        #expect(relays.map(\.publishedCount) == [1, 0, 0])
    }

    @Test func doesNotOfferElsewhereWhatIsRefused() async {
        let relays = [StubRelay(answer: refused), StubRelay()]
        await #expect(throws: refused) { try await RelaySet(relays).publish(Self.message, on: .statusDefault) }
        #expect(relays[1].publishedCount == 0)
    }

    @Test func saysWhyNoneTakesIt() async {
        await #expect(throws: unavailable) {
            try await RelaySet([StubRelay(answer: unavailable)]).publish(Self.message, on: .statusDefault)
        }
        await #expect { try await RelaySet([]).publish(Self.message, on: .statusDefault) } throws: {
            ($0 as? RelayError)?.code == .unavailable
        }
    }

    @Test func isAttachedWhenOneIs() {
        let gone = StubRelay(state: .detached("gone"))
        let starting = StubRelay(state: .detached("starting"))
        #expect(RelaySet([gone, StubRelay()]).state == .attached)
        #expect(RelaySet([gone, starting]).state == .detached("gone; starting"))
        #expect(RelaySet([]).state != .attached)
    }

    @Test func runsAll() async {
        let count = Mutex(0)
        await RelaySet([StubRelay(), StubRelay()]).run { messages in count.withLock { $0 += messages.count } }
        #expect(count.withLock { $0 } == 2)
    }
}
