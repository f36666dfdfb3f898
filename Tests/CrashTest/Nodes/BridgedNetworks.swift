import LoopbackRelay
import Core
import Synchronization
import TestSupport
import Waku

/// A Waku network of several relay nodes, one for each node under test: each message reaches all relay nodes, except for a few random losses.
final class BridgedNetworks: Sendable {
    let networks: [LoopbackNetwork]
    private let missedPercentage: Int
    private let state: Mutex<(seen: GenerationalCache<MessageHash, Void>, generator: SeededGenerator)>

    init(_ networks: [LoopbackNetwork], missedPercentage: Int, seed: UInt64) {
        self.networks = networks
        self.missedPercentage = missedPercentage
        state = Mutex((GenerationalCache(capacity: 10_000), SeededGenerator(seed: seed)))
    }

    /// Runs until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            for (place, network) in networks.enumerated() {
                group.addTask { [self] in
                    let relay = network.relay()
                    await relay.run { batch in
                        for received in batch { self.spread(received, from: place) }
                    }
                }
            }
        }
    }

    private func spread(_ received: ReceivedMessage, from place: Int) {
        let targets = state.withLock { state -> [Int] in
            guard !state.seen.contains(received.hash) else { return [] }
            state.seen.set((), of: received.hash)
            // At least one relay node receives it.
            return networks.indices.filter {
                $0 != place
                    && Int.random(in: 0..<100, using: &state.generator) >= ($0 == (place + 1) % networks.count ? 0 : missedPercentage)
            }
        }
        for target in targets { networks[target].publish(received.message, on: received.pubsubTopic) }
    }
}
