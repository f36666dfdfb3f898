import PushStore
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("What was posted for whom, and tokens in doubt")
struct TokenTests {
    let fixture: StoreFixture
    let key = StoreFixture.key()
    var store: Store { fixture.store }

    init() async throws {
        fixture = try StoreFixture()
        try await fixture.store.register(key, version: 4, token: "a token")
    }

    private func accept(_ number: UInt8, postedAs shared: DeliveryID? = nil) async throws -> WaitingDelivery {
        let waiting = try await store.enqueue(DeliveryID(messageID: [number], key: key), key)
        try await store.commit { transaction in
            try transaction.accepted(
                waiting.delivery, registration: (waiting.registration, 4), postedAs: shared,
                at: Timestamp(rawValue: Int64(number)))
        }
        return waiting
    }

    @Test("What was posted is found by the beginning of its delivery, also after the store was opened again")
    func posted() async throws {
        let first = try await accept(1)
        _ = try await accept(2)
        try store.close()
        let store = try fixture.reopened()
        let expected = PostedNotification(delivery: first.delivery, registration: first.registration, version: 4)
        #expect(try store.read { try $0.posted(under: Array(first.delivery.bytes.prefix(16))) } == [expected])
        #expect(try store.read { try $0.posted(under: randomBytes(16)) }.isEmpty)
        let token = try #require(try store.read { try $0.registeredToken(first.registration) })
        #expect(token.key == key)
        #expect(token.version == 4)
        #expect(token.deviceToken == DeviceToken("a token"))
    }

    @Test("Those that were posted together are found by the id that they share, and not by their own")
    func together() async throws {
        let first = try await accept(1)
        let second = try await accept(2, postedAs: first.delivery)
        let found = try store.read { try $0.posted(under: Array(first.delivery.bytes.prefix(16))) }
        #expect(Set(found.map(\.delivery)) == [first.delivery, second.delivery])
        #expect(try store.read { try $0.posted(under: Array(second.delivery.bytes.prefix(16))) }.isEmpty)
    }

    @Test("What an older version noted is about nobody")
    func withoutARegistration() async throws {
        let waiting = try await store.enqueue(DeliveryID(messageID: [1], key: key), key)
        try await store.commit { try $0.accepted(waiting.delivery, at: Timestamp(rawValue: 1)) }
        #expect(try store.read { try $0.posted(under: Array(waiting.delivery.bytes.prefix(16))) }.isEmpty)
    }

    @Test("A failure is held against a delivery once")
    func failures() async throws {
        let waiting = try await accept(1)
        #expect(try await store.commit { try $0.noteFailure(of: waiting.delivery) })
        #expect(try await store.commit { try $0.noteFailure(of: waiting.delivery) } == false)
        #expect(try await store.commit { try $0.noteFailure(of: DeliveryID(messageID: [9], key: key)) } == false)
    }

    @Test("A tombstone has no token")
    func tombstone() async throws {
        let waiting = try await accept(1)
        try await store.commit { try $0.unregister(key, version: 4, at: Timestamp(rawValue: 2)) }
        #expect(try store.read { try $0.registeredToken(waiting.registration) == nil })
        // Its row stays: a failure can still be told to be of it.
        #expect(try store.read { try $0.posted(under: Array(waiting.delivery.bytes.prefix(16))) }.count == 1)
    }

    @Test("A doubt is kept as it is, until it is forgotten, by itself after a long time")
    func doubts() async throws {
        #expect(try store.read { try $0.hasDoubts() } == false)
        let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
        for unfailedSince in [nil, start] {
            let doubt = TokenDoubt(
                version: .max, failureCount: 3, firstFailure: start, lastFailure: start + .seconds(5), unfailedSince: unfailedSince)
            try await store.commit { try $0.setDoubt(doubt, of: 7) }
            #expect(try store.read { try $0.doubt(of: 7) } == doubt)
        }
        #expect(try store.read { try $0.hasDoubts() })
        #expect(try store.read { try $0.doubt(of: 8) } == nil)
        try await store.commit { try $0.prune(before: start + .seconds(89 * 86_400), keeping: 100) }
        #expect(try store.read { try $0.hasDoubts() })
        try await store.commit { try $0.prune(before: start + .seconds(91 * 86_400), keeping: 100) }
        #expect(try store.read { try $0.hasDoubts() } == false)
        try await store.commit { try $0.setDoubt(nil, of: 7) }
    }
}
