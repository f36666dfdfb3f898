import Synchronization
package import Waku

/// A network within this process: one node's REST API by ``LoopbackServer``, and participants without any REST by ``relay(pubsubTopics:bufferCapacity:)``.
///
/// What one publishes reaches all others, the pollers and the store, and does not come back to it unless it wants that. Polling sees everything, also what came
/// by REST, as with a real node.
package final class LoopbackNetwork: Sendable {
    private struct Inner {
        var state: LoopbackState
        var faults = LoopbackFaults()
        var participants: [ObjectIdentifier: Participant] = [:]
    }

    /// A participant that is gone is forgotten when the next message comes.
    private struct Participant {
        weak var relay: LoopbackRelay?
    }

    private let inner: Mutex<Inner>

    /// - Parameters:
    ///   - cacheCapacity: How many messages are kept for pollers: 50 at an nwaku node whose operator did not raise it. At least 1.
    ///   - archiveCount: How many messages the store keeps.
    ///   - archiveByteCount: How many bytes of payloads and topics the store keeps.
    package init(cacheCapacity: Int = 50, archiveCount: Int = 10_000, archiveByteCount: Int = 64 << 20) {
        let limits = LoopbackState.Limits(
            cacheCapacity: max(cacheCapacity, 1), archiveCount: archiveCount, archiveByteCount: archiveByteCount)
        inner = Mutex(Inner(state: LoopbackState(limits: limits)))
    }

    /// Joins the network. From now on messages are kept for it; they are handed over while it runs.
    ///
    /// - Parameters:
    ///   - bufferCapacity: Messages beyond it are dropped, and counted.
    ///   - hearsItself: What it publishes comes back to it, as it does to who polls a node.
    package func relay(
        pubsubTopics: [PubsubTopic] = [.statusDefault], bufferCapacity: Int = 10_000, hearsItself: Bool = false
    ) -> LoopbackRelay {
        let relay = LoopbackRelay(network: self, pubsubTopics: pubsubTopics, bufferCapacity: bufferCapacity, hearsItself: hearsItself)
        inner.withLock { $0.participants[ObjectIdentifier(relay)] = Participant(relay: relay) }
        return relay
    }

    /// Lets the node forget subscriptions and cache, as a restart does. The store keeps its messages.
    package func restart() {
        inner.withLock { $0.state.restart() }
    }

    /// What its node does wrong, from now on.
    package var faults: LoopbackFaults {
        get { inner.withLock { $0.faults } }
        set { inner.withLock { $0.faults = newValue } }
    }

    /// Whether a publication at the node is to go nowhere.
    func losesPublication() -> Bool {
        inner.withLock { inner in
            guard inner.faults.lostPublicationCount > 0 else { return false }
            inner.faults.lostPublicationCount -= 1
            return true
        }
    }

    /// A message from nowhere: it reaches everybody.
    package func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) {
        publish(message, on: pubsubTopic, from: nil)
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic, from origin: LoopbackRelay?) {
        let received = ReceivedMessage(message: message, pubsubTopic: pubsubTopic)
        let relays = inner.withLock { inner in
            inner.state.arrive(received, at: .now())
            inner.participants = inner.participants.filter { $0.value.relay != nil }
            return inner.participants.values.compactMap(\.relay)
        }
        for relay in relays where relay !== origin || relay.hearsItself {
            relay.receive(received)
        }
    }

    func withState<Result: Sendable>(_ body: (inout LoopbackState) -> Result) -> Result {
        inner.withLock { body(&$0.state) }
    }
}
