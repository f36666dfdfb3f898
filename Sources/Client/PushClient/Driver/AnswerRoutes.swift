import Synchronization
import Waku
import WakuCrypto

/// The topics that a client subscribes to, and the pending question or registrant that each belongs to.
final class AnswerRoutes<Question: Sendable>: Sendable {
    private struct State {
        var tickets = AnswerTickets<Question>()
        /// Contact code topics.
        var registrants: [ContentTopic: PublicKey] = [:]
    }

    private let network: ClientNetwork
    private let state = Mutex(State())

    init(_ network: ClientNetwork) {
        self.network = network
    }

    /// The questions that a message on this topic may answer, and the registrant whose contact code topic it is.
    subscript(topic: ContentTopic) -> (tickets: [(id: Int, question: Question)], registrant: PublicKey?) {
        state.withLock { ($0.tickets.tickets(on: topic), $0.registrants[topic]) }
    }

    /// Subscribes to the topic of a question's answers, until ``end(_:)`` or later questions displace it.
    func add(_ question: Question, on topic: ContentTopic) {
        network.watching.retain(topic)
        network.watching.release(state.withLock { $0.tickets.add(question, on: topic, at: .now) })
    }

    /// Ends a question; further answers are not expected.
    func end(_ ticket: Int) {
        let topic = state.withLock { $0.tickets.remove(ticket) }
        network.watching.release(topic.map { [$0] } ?? [])
    }

    /// Subscribes to the contact code topics of these registrants.
    func watch(_ registrants: [PublicKey]) {
        let topics = registrants.map(ClientNetwork.contactCodeTopic)
        state.withLock { state in
            for (topic, registrant) in zip(topics, registrants) { state.registrants[topic] = registrant }
        }
        network.watching.keep(topics)
    }

    func forget(_ registrant: PublicKey) {
        let topic = ClientNetwork.contactCodeTopic(registrant)
        _ = state.withLock { $0.registrants.removeValue(forKey: topic) }
        network.watching.drop([topic])
    }
}
