import LoopbackRelay
import Testing
import Core
import Waku

struct LoopbackNetworkTests {
    private func message(_ number: UInt8) -> WakuMessage {
        WakuMessage(payload: [number], contentTopic: ContentTopic(TopicTag(rawValue: 1)), timestamp: .now())
    }

    /// The payloads of the first messages that a relay delivers.
    private func take(_ count: Int, from relay: LoopbackParticipant) async -> [UInt8] {
        let (stream, continuation) = AsyncStream.makeStream(of: UInt8.self)
        let run = Task {
            await relay.run { messages in
                for message in messages { continuation.yield(message.message.payload[0]) }
            }
        }
        defer { run.cancel() }
        var taken: [UInt8] = []
        for await number in stream {
            taken.append(number)
            if taken.count == count { break }
        }
        return taken
    }

    @Test(.timeLimit(.minutes(5))) func aPublicationReachesAllOthers() async throws {
        let network = LoopbackNetwork()
        let publisher = network.relay()
        let other = network.relay()
        try await publisher.publish(message(1), on: .statusDefault)
        try await other.publish(message(2), on: .statusDefault)
        network.publish(message(3), on: .statusDefault)
        #expect(await take(2, from: publisher) == [2, 3])
        #expect(await take(2, from: other) == [1, 3])
    }

    @Test(.timeLimit(.minutes(5))) func aRelayRunsAgainAfterItWasCancelled() async {
        let network = LoopbackNetwork()
        let relay = network.relay()
        network.publish(message(1), on: .statusDefault)
        #expect(await take(1, from: relay) == [1])
        network.publish(message(2), on: .statusDefault)
        #expect(await take(1, from: relay) == [2])
    }

    @Test func aFullBufferDropsAndCounts() {
        let network = LoopbackNetwork()
        let relay = network.relay(bufferCapacity: 2)
        for number in UInt8(1)...5 { network.publish(message(number), on: .statusDefault) }
        network.publish(message(6), on: PubsubTopic(rawValue: "/waku/2/rs/16/64"))
        #expect(relay.droppedCount == 3)
    }

    @Test func refusesInvalidMessages() async {
        let relay = LoopbackNetwork().relay()
        let large = WakuMessage(
            payload: [UInt8](repeating: 0, count: 1 << 20), contentTopic: ContentTopic(TopicTag(rawValue: 1)), timestamp: .now())
        await #expect { try await relay.publish(large, on: .statusDefault) } throws: { ($0 as? RelayError)?.code == .refused }
    }
}
