import Synchronization
public import Core
public import Waku

/// A Waku network inside this process, for tests and trials without a network: participants, created by
/// ``relay(pubsubTopics:bufferCapacity:hearsItself:)``, and a node whose REST API `LoopbackServer` serves.
///
/// A message reaches all participants except its publisher, the pollers of the REST API and the store. Pollers receive all messages, those
/// published by REST included, as with a real node.
public final class LoopbackNetwork: Sendable {
    private struct Inner {
        var state: LoopbackState
        var faults = LoopbackFaults()
        var participants: [ObjectIdentifier: Participant] = [:]
    }

    /// Deallocated participants are removed when the next message is published.
    private struct Participant {
        weak var relay: LoopbackParticipant?
    }

    private let inner: Mutex<Inner>

    /// - Parameters:
    ///   - cacheCapacity: Messages cached for pollers: nwaku's default is 50. At least 1.
    ///   - archiveCount: Messages in the store.
    ///   - archiveByteCount: Bytes of payloads and topics in the store.
    ///   - archiveClockTolerance: The store refuses messages whose timestamp differs from its clock by more than this.
    public init(
        cacheCapacity: Int = 50, archiveCount: Int = 10_000, archiveByteCount: Int = 64 << 20,
        archiveClockTolerance: Duration = .seconds(20)
    ) {
        let limits = LoopbackState.Limits(
            cacheCapacity: max(cacheCapacity, 1), archiveCount: archiveCount, archiveByteCount: archiveByteCount,
            archiveClockTolerance: archiveClockTolerance)
        inner = Mutex(Inner(state: LoopbackState(limits: limits)))
    }

    /// Adds a participant. Messages are buffered for it from now on and delivered while it runs.
    ///
    /// - Parameters:
    ///   - bufferCapacity: Messages beyond it are dropped and counted.
    ///   - hearsItself: Whether it receives its own messages, as pollers of a node do.
    public func relay(
        pubsubTopics: [PubsubTopic] = [.statusDefault], bufferCapacity: Int = 10_000, hearsItself: Bool = false
    ) -> LoopbackParticipant {
        let relay = LoopbackParticipant(network: self, pubsubTopics: pubsubTopics, bufferCapacity: bufferCapacity, hearsItself: hearsItself)
        inner.withLock { $0.participants[ObjectIdentifier(relay)] = Participant(relay: relay) }
        return relay
    }

    /// Simulates a restart of the node: subscriptions and cache are lost, the store is kept.
    package func restart() {
        inner.withLock { $0.state.restart() }
    }

    /// The faults that the node simulates from now on.
    package var faults: LoopbackFaults {
        get { inner.withLock { $0.faults } }
        set { inner.withLock { $0.faults = newValue } }
    }

    /// Whether to lose a publication at the node. Counts down ``LoopbackFaults/lostPublicationCount``.
    package func losesPublication() -> Bool {
        inner.withLock { inner in
            guard inner.faults.lostPublicationCount > 0 else { return false }
            inner.faults.lostPublicationCount -= 1
            return true
        }
    }

    /// Publishes a message from outside: all participants receive it.
    public func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic, at now: Timestamp = .now()) {
        publish(message, on: pubsubTopic, from: nil, at: now)
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic, from origin: LoopbackParticipant?, at now: Timestamp = .now()) {
        let received = ReceivedMessage(message: message, pubsubTopic: pubsubTopic)
        let relays = inner.withLock { inner in
            inner.state.arrive(received, at: now)
            inner.participants = inner.participants.filter { $0.value.relay != nil }
            return inner.participants.values.compactMap(\.relay)
        }
        for relay in relays where relay !== origin || relay.hearsItself {
            relay.receive(received)
        }
    }

    package func withState<Result: Sendable>(_ body: (inout LoopbackState) -> Result) -> Result {
        inner.withLock { body(&$0.state) }
    }
}
