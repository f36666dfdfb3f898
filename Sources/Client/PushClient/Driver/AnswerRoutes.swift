import Synchronization
import Waku
import WakuCrypto

/// The topics that a client subscribes to, and the pending question or registrant that each belongs to.
final class AnswerRoutes<Question: Sendable>: Sendable {
    private struct State {
        var tickets = AnswerTickets<Question>()
        var registrants = WatchedRegistrants()
    }

    private let network: ClientNetwork
    private let state = Mutex(State())

    init(_ network: ClientNetwork) {
        self.network = network
    }

    /// The questions that a message on this topic may answer, and the registrants whose contact code topic it is.
    subscript(topic: ContentTopic) -> (tickets: [(id: Int, question: Question)], registrants: [PublicKey]) {
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
            for (topic, registrant) in zip(topics, registrants) { state.registrants.add(registrant, on: topic) }
        }
        network.watching.keep(topics)
    }

    func unwatch(_ registrant: PublicKey) {
        let topic = ClientNetwork.contactCodeTopic(registrant)
        let isUnused = state.withLock { state in
            state.registrants.remove(registrant, from: topic)
            return state.registrants[topic].isEmpty
        }
        if isUnused { network.watching.drop([topic]) }
    }
}

/// Registrants by the content topics of their contact codes. Topics have four bytes, so that registrants can share one.
struct WatchedRegistrants {
    private var registrants: [ContentTopic: [PublicKey]] = [:]

    subscript(topic: ContentTopic) -> [PublicKey] { registrants[topic] ?? [] }

    mutating func add(_ registrant: PublicKey, on topic: ContentTopic) {
        guard !self[topic].contains(registrant) else { return }
        registrants[topic, default: []].append(registrant)
    }

    mutating func remove(_ registrant: PublicKey, from topic: ContentTopic) {
        let others = self[topic].filter { $0 != registrant }
        registrants[topic] = others.isEmpty ? nil : others
    }
}
