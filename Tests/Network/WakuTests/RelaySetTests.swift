import Synchronization
import Testing
import Core
import Waku

struct RelaySetTests {
    /// Gives fixed answers, and delivers one message.
    private final class StubRelay: Relay {
        let name: String
        let state: RelayState
        let answer: RelayError?
        let publication: Publication
        /// Never answers.
        let hangs: Bool
        let seenUntil: [PubsubTopic: Timestamp]
        let kept: Result<Set<MessageHash>, RelayError>
        let published = Mutex<[WakuMessage]>([])
        let lookUps = Mutex(0)

        init(
            _ name: String = "stub", state: RelayState = .attached, answer: RelayError? = nil,
            publication: Publication = .unconfirmed(canBeLookedUp: true), hangs: Bool = false, seenUntil: [PubsubTopic: Timestamp] = [:],
            kept: Result<Set<MessageHash>, RelayError> = .success([])
        ) {
            self.name = name
            self.state = state
            self.answer = answer
            self.publication = publication
            self.hangs = hangs
            self.seenUntil = seenUntil
            self.kept = kept
        }

        func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
            await deliver([ReceivedMessage(message: RelaySetTests.message, pubsubTopic: .statusDefault)])
        }

        func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
            if let answer { throw answer }
            if hangs { try? await Task.sleep(for: .seconds(3600)) }
            published.withLock { $0.append(message) }
            return publication
        }

        func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
            lookUps.withLock { $0 += 1 }
            if hangs { try? await Task.sleep(for: .seconds(3600)) }
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

    @Test func aMessageThatOneRelayRefusesIsPublishedByAnother() async throws {
        let relays = [StubRelay(answer: refused), StubRelay()]
        let taken = try await RelaySet(relays).publish(Self.message, on: .statusDefault, avoiding: [])
        #expect(relays[1].publishedCount == 1 && taken.places == [1])
    }

    @Test func aMessageThatAllRefuseIsRefusedUnlessOneIsUnavailable() async {
        await #expect(throws: refused) {
            try await RelaySet([StubRelay(answer: refused), StubRelay(answer: refused)]).publish(Self.message, on: .statusDefault)
        }
        await #expect(throws: unavailable) {
            try await RelaySet([StubRelay(answer: refused), StubRelay(answer: unavailable)]).publish(Self.message, on: .statusDefault)
        }
    }

    @Test func aRelayThatTakesTooLongIsPassedOver() async throws {
        let relays = [StubRelay(hangs: true), StubRelay()]
        let taken = try await RelaySet(relays).publish(Self.message, on: .statusDefault, avoiding: [])
        #expect(taken.places == [1])
    }

    @Test func avoidsTheRelaysOfTheEarlierPublication() async throws {
        let relays = [StubRelay(), StubRelay(), StubRelay(answer: refused)]
        let set = RelaySet(relays)
        #expect(try await set.publish(Self.message, on: .statusDefault, avoiding: [0]).places == [1])
        #expect(try await set.publish(Self.message, on: .statusDefault, avoiding: [0, 1]).places == [0])
    }

    @Test func publicationsByOneOfSeveralRelaysCanBeChecked() async throws {
        let vouching = StubRelay(publication: .confirmed)
        let taken = try await RelaySet([vouching, StubRelay()]).publish(Self.message, on: .statusDefault, avoiding: [])
        #expect(taken == PlacedPublication(.confirmed, places: [0], canBeChecked: true))
        let alone = try await RelaySet([vouching]).publish(Self.message, on: .statusDefault, avoiding: [])
        #expect(alone == PlacedPublication(.confirmed, places: [0], canBeChecked: false))
    }

    @Test func aRelayWhosePublicationsAreNeverConfirmedComesLast() async throws {
        let relays = [StubRelay("one"), StubRelay("two")]
        let set = RelaySet(relays)
        for _ in 1...RelayRanking.unconfirmedLimit {
            #expect(set.demotedRelays == [])
            set.note([RelayVerdict(place: 0, isConfirmed: false)])
        }
        #expect(set.demotedRelays == ["one"])
        try await set.publish(Self.message, on: .statusDefault)
        #expect(relays.map(\.publishedCount) == [0, 1])
        set.note([RelayVerdict(place: 0, isConfirmed: true)])
        #expect(set.demotedRelays == [])
    }

    @Test func detachedRelaysOfSeveralAreNamed() {
        let detached = StubRelay("two", state: .detached("refused"))
        #expect(RelaySet([StubRelay("one"), detached]).detachedRelays == ["two"])
        #expect(RelaySet([detached]).detachedRelays == [])
        // A libp2p relay has several peers and topics of its own.
        let inner = RelaySet([StubRelay("three"), detached])
        #expect(RelaySet([inner]).detachedRelays == ["two"])
        #expect(RelaySet([StubRelay("one"), inner]).detachedRelays == ["two"])
    }

    @Test func reportsWhyNoRelayAcceptsAMessage() async {
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

    @Test func seenUntilIsThatOfTheFurthestRelay() {
        let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")
        func time(_ seconds: Int) -> Timestamp { Timestamp(rawValue: 0) + .seconds(seconds) }
        // One relay is detached; the other waits for its store on one topic, and does not know the third.
        let away = StubRelay(state: .detached("gone"), seenUntil: [.statusDefault: time(10), other: time(10)])
        let waiting = StubRelay(seenUntil: [.statusDefault: time(50), other: time(5)])
        #expect(RelaySet([away, waiting, StubRelay()]).seenUntil == [.statusDefault: time(50), other: time(10)])
    }

    @Test func asksAllStores() async throws {
        let hashes = (1...3).map { MessageHash(bytes: [$0]) }
        let relays = [
            StubRelay(kept: .failure(unavailable)), StubRelay(kept: .success([hashes[0]])),
            StubRelay(kept: .success([hashes[0], hashes[1]])),
            StubRelay(kept: .failure(refused)), StubRelay(hangs: true), StubRelay(state: .detached("gone"), kept: .success(Set(hashes))),
        ]
        let findings = try await RelaySet(relays).findings(hashes)
        #expect(
            findings
                == StoreFindings(found: [1: [hashes[0]], 2: [hashes[0], hashes[1]]], unavailable: [0, 4], relayCount: 6))
        #expect(try await RelaySet(Array(relays[..<4])).lookUp(hashes) == [hashes[0], hashes[1]])
        #expect(try await RelaySet(Array(relays[5...])).lookUp(hashes) == Set(hashes))
    }

    @Test func tellsWhetherALookUpMaySucceedLater() async throws {
        let none = StubRelay(kept: .failure(refused))
        await #expect(throws: refused) { try await RelaySet([none, none]).lookUp([MessageHash(bytes: [1])]) }
        await #expect(throws: unavailable) {
            try await RelaySet([none, StubRelay(kept: .failure(unavailable))]).lookUp([MessageHash(bytes: [1])])
        }
    }
}
