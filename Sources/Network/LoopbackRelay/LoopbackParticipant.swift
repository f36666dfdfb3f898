import Core
import Synchronization
public import Waku

/// A participant of a ``LoopbackNetwork``. It receives messages without draining the cache that REST clients poll.
public final class LoopbackParticipant: Relay {
    private struct Buffer {
        var messages: [ReceivedMessage] = []
        var droppedCount = 0
    }

    private let network: LoopbackNetwork
    private let pubsubTopics: Set<PubsubTopic>
    private let capacity: Int
    private let buffer = Mutex(Buffer())
    private let added = WakeUpSignal()
    private let turn = ExclusiveTurn()

    /// Whether it receives its own messages.
    let hearsItself: Bool

    init(network: LoopbackNetwork, pubsubTopics: [PubsubTopic], bufferCapacity: Int, hearsItself: Bool) {
        self.hearsItself = hearsItself
        self.network = network
        self.pubsubTopics = Set(pubsubTopics)
        capacity = bufferCapacity
    }

    /// Messages dropped because the buffer was full.
    public var droppedCount: Int {
        buffer.withLock { $0.droppedCount }
    }

    /// `loopback`
    public var name: String { "loopback" }

    /// Always attached: there is no connection to lose.
    public var state: RelayState { .attached }

    /// Hands the message to all other participants at once.
    ///
    /// - Throws: `RelayError` with `refused` for a message that no node accepts.
    @discardableResult
    public func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        if let flaw = message.flaw { throw RelayError(code: .refused, message: flaw) }
        network.publish(message, on: pubsubTopic, from: self)
        // All participants received it.
        return .confirmed
    }

    /// Delivers all buffered messages in one batch. If another call is running, waits for it to end first.
    public func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        await turn.run {
            for await _ in added where !Task.isCancelled {
                let messages = buffer.withLock { buffer in
                    defer { buffer.messages = [] }
                    return buffer.messages
                }
                if !messages.isEmpty { await deliver(messages) }
            }
        }
    }

    /// Never waits: two participants that answer each other would deadlock.
    func receive(_ message: ReceivedMessage) {
        guard pubsubTopics.contains(message.pubsubTopic) else { return }
        buffer.withLock { buffer in
            guard buffer.messages.count < capacity else {
                buffer.droppedCount += 1
                return
            }
            buffer.messages.append(message)
        }
        added.signal()
    }
}
