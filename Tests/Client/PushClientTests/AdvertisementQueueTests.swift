import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushClient

@Suite struct AdvertisementQueueTests {
    private func message(_ byteCount: Int) -> WakuMessage {
        WakuMessage(payload: [UInt8](repeating: 0, count: byteCount), contentTopic: ContentTopic(TopicTag(rawValue: 1)), timestamp: .now())
    }

    /// Reading messages on the topics of contacts, with the derivation of their keys, is not part of receiving.
    @Test func messagesOfContactsAreNotReadWhenTheyAreReceived() async throws {
        let (bob, stranger) = (newKey(), PrivateKey.generate())
        let client = try await StatusPushClient.open(identity: .generate(), relays: [TestNetwork().relay()], store: MemoryClientStore())
        client.turn { machine, _ in machine.watch(bob) }
        client.routes.watch([bob])
        let advertisement = SignedAdvertisement.encode(
            ContactCodeAdvertisement(pushNotificationInfo: []), from: InstallationID("i"), signedBy: stranger)
        let messages = EnvelopeSealing.seal(
            advertisement, to: .topic(StatusTopics.contactCode(bob)), wakuSigner: stranger, at: .now())
        let queue = AdvertisementQueue()
        for message in messages { client.take(message, queue) }
        #expect(client.advertisementFlaw(of: bob) == nil)
        let (stream, continuation) = AsyncStream.makeStream(of: (WakuMessage, PublicKey).self)
        let reading = Task { await queue.run { continuation.yield(($0, $1)) } }
        defer { reading.cancel() }
        for await (message, owner) in stream {
            #expect(message == messages.first && owner == bob)
            break
        }
    }

    @Test func waitingMessagesAreBounded() async throws {
        let queue = AdvertisementQueue()
        let size = AdvertisementQueue.byteLimit / 4
        for _ in 0..<10 { queue.add(message(size - 1000), of: newKey()) }
        let count = Mutex(0)
        let reading = Task { await queue.run { _, _ in count.withLock { $0 += 1 } } }
        defer { reading.cancel() }
        try await eventually { count.withLock { $0 } == 4 }
        // Messages that were read make room.
        try await eventually {
            queue.add(message(size - 1000), of: newKey())
            return count.withLock { $0 } > 4
        }
    }

    @Test func cancelledRunReadsNoFurtherMessage() async {
        let queue = AdvertisementQueue()
        for _ in 0..<10 { queue.add(message(100), of: newKey()) }
        let count = Mutex(0)
        await Task {
            await queue.run { _, _ in
                count.withLock { $0 += 1 }
                withUnsafeCurrentTask { $0?.cancel() }
            }
        }.value
        #expect(count.withLock { $0 } == 1)
    }
}
