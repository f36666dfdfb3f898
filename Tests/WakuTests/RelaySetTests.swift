import Synchronization
import Testing
import Waku

struct RelaySetTests {
    /// Answers as told, and hands over one message.
    private final class StubRelay: Relay {
        let state: RelayState
        let answer: RelayError?
        let seenUntil: [PubsubTopic: Timestamp]
        let kept: Result<Set<MessageHash>, RelayError>
        let published = Mutex<[WakuMessage]>([])
        let lookUps = Mutex(0)

        init(
            state: RelayState = .attached, answer: RelayError? = nil, seenUntil: [PubsubTopic: Timestamp] = [:],
            kept: Result<Set<MessageHash>, RelayError> = .success([])
        ) {
            self.state = state
            self.answer = answer
            self.seenUntil = seenUntil
            self.kept = kept
        }

        func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
            await deliver([ReceivedMessage(message: RelaySetTests.message, pubsubTopic: .statusDefault)])
        }

        func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
            if let answer { throw answer }
            published.withLock { $0.append(message) }
            return .unconfirmed(canBeLookedUp: true)
        }

        func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
            lookUps.withLock { $0 += 1 }
            return try kept.get().intersection(hashes)
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

    @Test func eachTopicWasSeenAsFarAsTheBestGot() {
        let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")
        func time(_ seconds: Int) -> Timestamp { Timestamp(rawValue: 0) + .seconds(seconds) }
        // One is away; the other waits for its store on one topic, and does not know the third.
        let away = StubRelay(state: .detached("gone"), seenUntil: [.statusDefault: time(10), other: time(10)])
        let waiting = StubRelay(seenUntil: [.statusDefault: time(50), other: time(5)])
        #expect(RelaySet([away, waiting, StubRelay()]).seenUntil == [.statusDefault: time(50), other: time(10)])
    }

    @Test func looksUpAtOneAfterTheOther() async throws {
        let hashes = (1...3).map { MessageHash(bytes: [$0]) }
        let relays = [
            StubRelay(kept: .failure(unavailable)), StubRelay(kept: .success([hashes[0]])), StubRelay(kept: .success([hashes[1]])),
        ]
        #expect(try await RelaySet(relays).lookUp(hashes) == [hashes[0], hashes[1]])
        let all = [StubRelay(kept: .success(Set(hashes))), StubRelay()]
        #expect(try await RelaySet(all).lookUp(hashes) == Set(hashes))
        #expect(all[1].lookUps.withLock { $0 } == 0)
    }

    @Test func tellsWhetherALookUpMaySucceedLater() async throws {
        let none = StubRelay(kept: .failure(refused))
        await #expect(throws: refused) { try await RelaySet([none, none]).lookUp([MessageHash(bytes: [1])]) }
        await #expect(throws: unavailable) {
            try await RelaySet([none, StubRelay(kept: .failure(unavailable))]).lookUp([MessageHash(bytes: [1])])
        }
    }
}
