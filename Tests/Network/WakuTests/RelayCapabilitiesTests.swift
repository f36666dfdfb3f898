import Synchronization
import Testing
import Core
import Waku

/// Relay capabilities for clients, beyond receiving and publishing.
@Suite struct RelayCapabilitiesTests {
    /// Attached or not; has a store if it has pages.
    private final class PlainRelay: Relay {
        let state: RelayState
        let watched = Mutex<[ContentTopic]>([])

        init(_ state: RelayState) { self.state = state }

        func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {}
        func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication { .confirmed }
        func watch(_ contentTopics: [ContentTopic]) { watched.withLock { $0 += contentTopics } }
    }

    private final class CapableRelay: ConfirmingRelay, StoreReadingRelay {
        let failure: RelayError?
        let confirmed = Mutex<[ContentTopic]>([])
        var state: RelayState { .detached("it only confirms") }

        init(failure: RelayError? = nil) { self.failure = failure }

        func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {}
        func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication { .confirmed }

        func confirmWatching(_ contentTopics: [ContentTopic]) async throws(RelayError) {
            if let failure { throw failure }
            confirmed.withLock { $0 += contentTopics }
        }

        func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage {
            if let failure { throw failure }
            return StorePage(messages: [], hashes: [], cursor: "a cursor")
        }
    }

    /// Detached when it is looked at first, attached from then on.
    private final class LateRelay: Relay {
        private let isKnown = Atomic(false)
        var state: RelayState { isKnown.exchange(true, ordering: .relaxed) ? .attached : .detached("it starts") }

        func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {}
        func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication { .confirmed }
    }

    private let topics = [ContentTopic(TopicTag(rawValue: 7))]

    @Test(arguments: [[], ["topic"]], [false, true]) func peerInAMeshOrWithAFilterWorks(meshes: [String], isFilterNode: Bool) {
        let peer = RelayPeer(id: "peer", address: nil, isInbound: false, agent: nil, meshes: meshes, isFilterNode: isFilterNode)
        #expect(peer.isWorking == (meshes == ["topic"] || isFilterNode))
    }

    @Test func relayThatAttachesSoonIsAwaited() async throws {
        await #expect(throws: Never.self) { try await LateRelay().waitUntilAttached() }
    }

    @Test func relayThatBringsEverythingWatchesAsSoonAsItIsAttached() async throws {
        let relay = PlainRelay(.attached)
        try await relay.waitUntilWatching(topics)
        #expect(relay.watched.withLock { $0 } == topics)
    }

    @Test func confirmationCountsWhereThereIsOne() async throws {
        let relay = CapableRelay()
        try await relay.waitUntilWatching(topics)
        #expect(relay.confirmed.withLock { $0 } == topics)
    }

    @Test func oneOfSeveralRelaysIsEnough() async throws {
        let refusal = RelayError(code: .refused, message: "no")
        let good = CapableRelay()
        try await RelaySet([CapableRelay(failure: refusal), good]).waitUntilWatching(topics)
        #expect(good.confirmed.withLock { $0 } == topics)
        await #expect(throws: refusal) { try await RelaySet([CapableRelay(failure: refusal)]).waitUntilWatching(topics) }
        await #expect(throws: RelayError.self) { try await RelaySet([]).waitUntilWatching(topics) }
    }

    @Test func storeOfAnyRelayIsRead() async throws {
        let unavailable = RelayError(code: .unavailable, message: "busy")
        let set = RelaySet([PlainRelay(.attached), CapableRelay(failure: unavailable), CapableRelay()])
        #expect(try await set.storePage(StoreQuery()).cursor == "a cursor")
        await #expect(throws: unavailable) { try await RelaySet([CapableRelay(failure: unavailable)]).storePage(StoreQuery()) }
        let refusal = RelayError(code: .refused, message: "no store")
        for relays in [[CapableRelay(failure: unavailable), CapableRelay(failure: refusal)], [CapableRelay(failure: refusal)]] {
            await #expect(throws: relays.count > 1 ? unavailable : refusal) { try await RelaySet(relays).storePage(StoreQuery()) }
        }
        do {
            _ = try await RelaySet([PlainRelay(.attached)]).storePage(StoreQuery())
            Issue.record("there is no store")
        } catch {
            #expect(error.code == .refused)
        }
    }
}
