import Foundation
import PushClient
import PushClientSQLite
import Core
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

/// The steps of the tutorial `NotifyingAFriend`, verbatim.
@Suite(.timeLimit(.minutes(5))) struct TutorialTests {
    private let network = TutorialNetwork()

    @Test func everyStepDoesWhatTheTutorialSays() async throws {
        let state = try TemporaryFolder()
        let folder = state.path
        let server = network.server.publicKey
        let friend = try await registeredFriend(with: server)
        let (identity, relay, token) = (PrivateKey.generate(), network.relay(), "device-token")
        let (messageID, chatID, encrypted): ([UInt8], String, [UInt8]) = ([1], "a chat", [2, 3])

        // Open a client
        let store = try SQLiteClientStore(folder: folder, identity: identity)
        let client = try await StatusPushClient.open(identity: identity, relays: [relay], store: store)
        let running = Task { await client.run() }
        defer { running.cancel() }
        let progress = client.events

        // Register a device
        var profile = DeviceProfile(platform: .apn, deviceToken: DeviceToken(token), apnTopic: "im.status.ethereum")
        profile.mutedChats = ["a chat that is too loud"]
        let states = try await client.register(profile, with: [PushServer(key: server)], enablesReceiving: true)
        #expect(states == [server: .registered(version: 1)])

        // Let only contacts notify
        profile.contactsOnly = true
        profile.contacts = [friend]
        try await client.register(profile, with: [PushServer(key: server)])
        #expect(client.registrations == [server: .registered(version: 2)])

        // Discover a friend
        let devices = try await client.discover(friend)
        #expect(devices.map(\.server) == [server])

        // Notify her
        client.setSending(true)
        let message = OutgoingNotification(
            messageID: messageID, chatID: chatID, kind: .message, content: encrypted, recipients: [.init(friend)])
        let outcomes = try await client.notify(message)
        #expect(outcomes.map(\.result) == [.notified(by: server)])

        // Show progress
        var shown: [String] = []
        func show(_ text: String) { shown.append(text) }
        for await event in progress {
            switch event {
            case .registered(let server, let version): show("registered version \(version) with \(server.hex)")
            case .notified(_, let outcome): show("notified a device of \(outcome.registrant.hex)")
            default: break
            }
            if case .notified = event { break }
        }
        #expect(shown.count == 3)
    }

    /// The app goes on with a new client, as the tutorial says, right after the user opted out.
    @Test func newClientHasTheSettingsOfTheStoppedOne() async throws {
        let state = try TemporaryFolder()
        let identity = PrivateKey.generate()
        let store = try SQLiteClientStore(folder: state.path, identity: identity)
        let client = try await StatusPushClient.open(identity: identity, relays: [network.relay()], store: store)
        let running = Task { await client.run() }
        let profile = DeviceProfile(platform: .firebase, deviceToken: DeviceToken("device-token"))
        try await client.register(profile, with: [PushServer(key: network.server.publicKey)], enablesReceiving: true)
        client.setReceiving(false)
        running.cancel()
        await running.value
        let next = try await StatusPushClient.open(identity: identity, relays: [network.relay()], store: store)
        #expect(!next.isReceiving)
    }

    /// The tutorial contains these steps verbatim.
    @Test func tutorialShowsThisCode() throws {
        let text = try String(contentsOf: Repository.file("Sources/Client/PushClient/PushClient.docc/NotifyingAFriend.md"), encoding: .utf8)
        let code = try String(contentsOfFile: #filePath, encoding: .utf8).split(separator: "\n").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        var isCode = false
        var count = 0
        for line in text.split(separator: "\n") {
            if line.hasPrefix("```") {
                isCode.toggle()
            } else if isCode {
                let step = line.trimmingCharacters(in: .whitespaces)
                #expect(code.contains { $0 == step || $0.replacing("in progress", with: "in client.events") == step }, "\(step)")
                count += 1
            }
        }
        #expect(count > 15)
    }

    private func registeredFriend(with server: PublicKey) async throws -> PublicKey {
        let identity = PrivateKey.generate()
        let client = StatusPushClient(identity: identity, relay: network.relay())
        let running = Task { await client.run() }
        let events = client.events
        client.setReceiving(true)
        let profile = DeviceProfile(platform: .firebase, deviceToken: DeviceToken("friend"))
        try await client.register(profile, with: [PushServer(key: server)])
        for await event in events {
            if case .advertised = event { break }
        }
        running.cancel()
        await running.value
        return identity.publicKey
    }
}

/// An in-process network with one server, with real encryption and signatures.
private final class TutorialNetwork: Sendable {
    let server = PrivateKey.generate()
    private let state: Mutex<(node: PlainNode, feeds: [AsyncStream<ReceivedMessage>.Continuation], archive: [WakuMessage])>

    init() {
        state = Mutex((PlainNode(identity: server), [], []))
    }

    func relay() -> TutorialRelay {
        let (stream, feed) = AsyncStream.makeStream(of: ReceivedMessage.self)
        state.withLock { $0.feeds.append(feed) }
        return TutorialRelay(network: self, stream: stream)
    }

    var archive: [WakuMessage] { state.withLock(\.archive) }

    func publish(_ message: WakuMessage) {
        let answer = state.withLock { try? $0.node.receive(message) }
        spread(message)
        guard let answer else { return }
        let envelope = MetadataEnvelope.encode(answer.kind, payload: answer.payload, signedBy: server).bytes
        for message in EnvelopeSealing.seal(envelope, to: .partitioned(answer.recipient), wakuSigner: server, at: .now()) {
            spread(message)
        }
    }

    private func spread(_ message: WakuMessage) {
        let feeds = state.withLock { state in
            state.archive.append(message)
            return state.feeds
        }
        for feed in feeds { feed.yield(ReceivedMessage(message: message, pubsubTopic: .statusDefault)) }
    }
}

private final class TutorialRelay: StoreReadingRelay {
    let network: TutorialNetwork
    let stream: AsyncStream<ReceivedMessage>
    var state: RelayState { .attached }

    init(network: TutorialNetwork, stream: AsyncStream<ReceivedMessage>) {
        self.network = network
        self.stream = stream
    }

    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        for await received in stream { await deliver([received]) }
    }

    @discardableResult
    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        network.publish(message)
        return .confirmed
    }

    func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage {
        let messages = network.archive.filter { query.contentTopics.contains($0.contentTopic) }
            .map { ReceivedMessage(message: $0, pubsubTopic: .statusDefault) }
        return StorePage(messages: messages, hashes: messages.map(\.hash), cursor: nil)
    }
}
