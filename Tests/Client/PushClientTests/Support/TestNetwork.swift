import StatusProtocol
import Synchronization
import TestSupport
import Core
import Waku
import WakuCrypto

/// An in-process network whose servers really encrypt and sign. Messages reach all participants at once.
final class TestNetwork: Sendable {
    private struct Inner {
        var relays: [TestRelay] = []
        var servers: [PublicKey: TestServer] = [:]
        var published: [WakuMessage] = []
    }

    struct TestServer: Sendable {
        let identity: PrivateKey
        var node: PlainNode
        /// The server's version 0.1 service, which runs at the same time.
        var v01: PlainV01Node
        var isUp = true
        /// The key that signs its answers; nil for its own.
        var signer: PrivateKey?
        /// Answers are held back until ``release(_:)``.
        var holdsAnswers = false
        var held: [WakuMessage] = []
    }

    private let inner = Mutex(Inner())

    /// The number of devices notified by a version 0.1 server.
    func v01NotifiedCount(by server: PublicKey) -> Int {
        inner.withLock { $0.servers[server]?.v01.notified.count ?? 0 }
    }

    func addServer(_ identity: PrivateKey = .generate()) -> PublicKey {
        inner.withLock {
            $0.servers[identity.publicKey] = TestServer(
                identity: identity, node: PlainNode(identity: identity), v01: PlainV01Node(identity: identity))
        }
        return identity.publicKey
    }

    func change(_ server: PublicKey, _ body: (inout TestServer) -> Void) {
        inner.withLock { inner in
            guard var changed = inner.servers[server] else { return }
            body(&changed)
            inner.servers[server] = changed
        }
    }

    /// Sends the answers that a server held back.
    func release(_ server: PublicKey) {
        var held: [WakuMessage] = []
        change(server) { server in
            held = server.held
            server.held = []
            server.holdsAnswers = false
        }
        for message in held { spread(message) }
    }

    func relay() -> TestRelay {
        let relay = TestRelay(network: self)
        inner.withLock { $0.relays.append(relay) }
        return relay
    }

    /// All published messages, including those of servers.
    var published: [WakuMessage] { inner.withLock(\.published) }

    func notifiedCount(by server: PublicKey) -> Int {
        inner.withLock { $0.servers[server]?.node.notified.count ?? 0 }
    }

    func spread(_ message: WakuMessage) {
        let relays = inner.withLock { inner in
            inner.published.append(message)
            return inner.relays
        }
        for relay in relays { relay.receive(message) }
    }

    func publish(_ message: WakuMessage) {
        spread(message)
        let answers = inner.withLock { inner in
            inner.servers.keys.flatMap { key -> [WakuMessage] in
                guard var server = inner.servers[key], server.isUp else { return [] }
                defer { inner.servers[key] = server }
                let messages = server.answers(to: message)
                guard server.holdsAnswers else { return messages }
                server.held += messages
                return []
            }
        }
        for answer in answers { spread(answer) }
    }
}

extension TestNetwork.TestServer {
    fileprivate mutating func answers(to message: WakuMessage) -> [WakuMessage] {
        let signer = signer ?? identity
        if let answer = try? node.receive(message) {
            let envelope = MetadataEnvelope.encode(answer.kind, payload: answer.payload, signedBy: signer).bytes
            return EnvelopeSealing.seal(envelope, to: .partitioned(answer.recipient), wakuSigner: signer, at: message.timestamp)
        }
        guard let answer = try? v01.receive(message) else { return [] }
        let envelope = V01.Envelope.encode(answer.type, payload: answer.payload, signedBy: signer)
        if answer.type == .acknowledgement {
            guard let acknowledgement = try? V01.Acknowledgement(parsing: answer.payload), let ackKey = V01.AckKey(acknowledgement.id)
            else { return [] }
            return [V01.seal(envelope, under: ackKey, wakuSigner: signer, at: message.timestamp)]
        }
        guard let asker = try? EnvelopeSealing.open(message, identity: identity).signer else { return [] }
        return EnvelopeSealing.seal(envelope, to: .partitioned(asker), wakuSigner: signer, at: message.timestamp)
    }
}

/// A participant's connection to a ``TestNetwork``. Like a light client, it receives messages on a topic once the subscription was confirmed.
final class TestRelay: ConfirmingRelay, StoreReadingRelay {
    private struct Inner {
        var watched: Set<ContentTopic> = []
        var confirmed: Set<ContentTopic> = []
        var failure: RelayError?
        var attemptCount = 0
        var lookUpCount = 0
        var hasStore = true
        var unreadableTopic: ContentTopic?
        var heldTopic: ContentTopic?
        var failsEveryOtherLookUp = false
        /// The topic of each successful publication, and the topics confirmed by then.
        var publishedTopics: [(topic: ContentTopic, confirmed: Set<ContentTopic>)] = []
        var feed: AsyncStream<ReceivedMessage>.Continuation?
        /// Messages received before the first ``run(deliver:)``.
        var early: [ReceivedMessage] = []
        var isConfirming = true
        var confirmingCount = 0
        var topicLimit = Int.max
        var mostWatched = 0
    }

    private let network: TestNetwork
    private let inner = Mutex(Inner())

    init(network: TestNetwork) {
        self.network = network
    }

    var state: RelayState { .attached }
    var lookUpCount: Int { inner.withLock(\.lookUpCount) }
    var publishedTopics: [(topic: ContentTopic, confirmed: Set<ContentTopic>)] { inner.withLock(\.publishedTopics) }

    /// How often messages were to be published.
    var attemptCount: Int { inner.withLock(\.attemptCount) }

    func setFailure(_ failure: RelayError?) { inner.withLock { $0.failure = failure } }
    /// Without one, look-ups fail as over libp2p when no peer has a store.
    func setStore(_ hasStore: Bool) { inner.withLock { $0.hasStore = hasStore } }
    /// Queries for it fail, as when the store does not answer.
    func setUnreadable(_ topic: ContentTopic) { inner.withLock { $0.unreadableTopic = topic } }
    /// Queries for it get no answer, and no failure either.
    func setHeld(_ topic: ContentTopic) { inner.withLock { $0.heldTopic = topic } }
    func setFailingEveryOtherLookUp() { inner.withLock { $0.failsEveryOtherLookUp = true } }
    func setConfirming(_ isConfirming: Bool) { inner.withLock { $0.isConfirming = isConfirming } }

    var watchedTopics: Set<ContentTopic> { inner.withLock(\.watched) }

    /// Simulates a filter node's limit of 1,000 topics per client.
    func setTopicLimit(_ limit: Int) { inner.withLock { $0.topicLimit = limit } }
    var mostWatchedTopics: Int { inner.withLock(\.mostWatched) }

    func watch(_ contentTopics: [ContentTopic]) {
        inner.withLock { inner in
            for topic in contentTopics where inner.watched.count < inner.topicLimit { inner.watched.insert(topic) }
            inner.mostWatched = max(inner.mostWatched, inner.watched.count)
        }
    }

    func unwatch(_ contentTopics: [ContentTopic]) {
        inner.withLock { inner in
            inner.watched.subtract(contentTopics)
            inner.confirmed.subtract(contentTopics)
        }
    }

    /// The number of calls of ``confirmWatching(_:)`` in progress.
    var confirmingCount: Int { inner.withLock(\.confirmingCount) }

    func confirmWatching(_ contentTopics: [ContentTopic]) async throws(RelayError) {
        inner.withLock { $0.confirmingCount += 1 }
        defer { inner.withLock { $0.confirmingCount -= 1 } }
        // A subscription takes a moment.
        await Task.yield()
        while !inner.withLock(\.isConfirming) {
            if Task.isCancelled { throw RelayError(code: .unavailable, message: "cancelled") }
            try? await Task.sleep(for: .milliseconds(5))
        }
        guard inner.withLock({ $0.watched.isSuperset(of: contentTopics) }) else {
            throw RelayError(code: .unavailable, message: "no filter node accepted the topic of the answer")
        }
        inner.withLock { inner in inner.confirmed.formUnion(contentTopics.filter { inner.watched.contains($0) }) }
    }

    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        let (stream, continuation) = AsyncStream.makeStream(of: ReceivedMessage.self)
        inner.withLock { inner in
            inner.feed = continuation
            for message in inner.early { continuation.yield(message) }
            inner.early = []
        }
        for await received in stream { await deliver([received]) }
    }

    func receive(_ message: WakuMessage) {
        inner.withLock { inner in
            guard inner.confirmed.contains(message.contentTopic) || inner.watched.contains(message.contentTopic) else { return }
            let received = ReceivedMessage(message: message, pubsubTopic: .statusDefault)
            if let feed = inner.feed { feed.yield(received) } else { inner.early.append(received) }
        }
    }

    @discardableResult
    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let failure = inner.withLock { inner in
            inner.attemptCount += 1
            if inner.failure == nil { inner.publishedTopics.append((message.contentTopic, inner.confirmed)) }
            return inner.failure
        }
        if let failure { throw failure }
        network.publish(message)
        return .confirmed
    }

    func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage {
        let (hasStore, unreadableTopic, heldTopic, fails) = inner.withLock { inner in
            inner.lookUpCount += 1
            let fails = inner.failsEveryOtherLookUp && inner.lookUpCount.isMultiple(of: 2)
            return (inner.hasStore, inner.unreadableTopic, inner.heldTopic, fails)
        }
        if let heldTopic, query.contentTopics.contains(heldTopic) {
            while !Task.isCancelled { try? await Task.sleep(for: .seconds(60)) }
            throw RelayError(code: .unavailable, message: "cancelled")
        }
        guard hasStore else { throw RelayError(code: .refused, message: "no peer has a store") }
        if fails || unreadableTopic.map(query.contentTopics.contains) ?? false {
            throw RelayError(code: .unavailable, message: "the store does not answer")
        }
        let stored = network.published.filter { query.contentTopics.contains($0.contentTopic) }
            .sorted { query.isAscending ? $0.timestamp < $1.timestamp : $0.timestamp > $1.timestamp }
        let page = stored.dropFirst(query.cursor.flatMap { Int($0) } ?? 0).prefix(query.pageSize)
        let messages = page.map { ReceivedMessage(message: $0, pubsubTopic: .statusDefault) }
            .sorted { $0.message.timestamp < $1.message.timestamp }
        return StorePage(
            messages: messages, hashes: messages.map(\.hash), cursor: page.endIndex < stored.endIndex ? String(page.endIndex) : nil)
    }
}
