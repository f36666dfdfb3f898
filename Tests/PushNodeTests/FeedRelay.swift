import Synchronization
import Waku

/// A relay that brings what a test feeds it, batch by batch, and collects what is published.
final class FeedRelay: Relay {
    typealias Deliver = @Sendable ([ReceivedMessage]) async -> Void

    private struct State {
        var deliver: Deliver?
        var published: [WakuMessage] = []
    }

    private let current = Mutex(State())

    func run(deliver: @escaping Deliver) async {
        current.withLock { $0.deliver = deliver }
        while (try? await Task.sleep(for: .seconds(3600))) != nil {}
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) {
        current.withLock { $0.published.append(message) }
    }

    var state: RelayState { current.withLock { $0.deliver == nil } ? .detached("not yet running") : .attached }
    var published: [WakuMessage] { current.withLock { $0.published } }

    /// Returns when the node took them. It must run.
    func feed(_ messages: [WakuMessage]) async {
        guard let deliver = current.withLock({ $0.deliver }) else { return }
        await deliver(messages.map { ReceivedMessage(message: $0, pubsubTopic: .statusDefault) })
    }
}
