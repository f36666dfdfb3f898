import LoopbackRelay
import Synchronization
import TestSupport
import Core
import Waku

/// A client's relay that delivers some of its published messages a second time, unchanged, after a delay.
final class RepeatingRelay: Relay {
    private static let longestDelay = 1500

    private let network: LoopbackNetwork
    private let relay: LoopbackParticipant
    private let percentage: Int
    private let generator: Mutex<SeededGenerator>
    private let repeated: @Sendable () -> Void

    init(_ network: LoopbackNetwork, percentage: Int, seed: UInt64, repeated: @escaping @Sendable () -> Void = {}) {
        self.network = network
        self.percentage = percentage
        self.repeated = repeated
        relay = network.relay()
        generator = Mutex(SeededGenerator(seed: seed))
    }

    var state: RelayState { relay.state }

    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        await relay.run(deliver: deliver)
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let publication = try await relay.publish(message, on: pubsubTopic)
        let delay = generator.withLock { generator in
            Int.random(in: 0..<100, using: &generator) < percentage ? Int.random(in: 0...Self.longestDelay, using: &generator) : nil
        }
        guard let delay else { return publication }
        repeated()
        Task { [network] in
            try? await Task.sleep(for: .milliseconds(delay))
            network.publish(message, on: pubsubTopic)
        }
        return publication
    }
}
