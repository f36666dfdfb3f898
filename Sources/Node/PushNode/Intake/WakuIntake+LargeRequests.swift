import Delivery
import NodeAPI
import NodeMetrics
import RateLimits
import Storage
import Synchronization

/// Requests that are committed in parts: see ``LargeRequestTurns``.
extension WakuIntake {
    /// The next part of a large request.
    struct Part: Sendable {
        let message: Message
        let answer: PendingAnswer
        /// The payer, and the largest number of devices in this part.
        let turns: (charge: Charge, size: Int)
        let command: StoreCommand<Claimed<Handler.Outcome>>
        let isFirst: Bool
    }

    func add(_ part: Part) {
        turns.withLock { $0.add(part, size: part.turns.size, by: part.turns.charge) }
    }

    /// Adds the rest of a request of which a first part was committed beside other messages, unless too many wait: then it is answered with an
    /// error. Returns false if the request is complete, or has failed.
    func addRest(of message: Message, answer: PendingAnswer, after result: Result<Claimed<Handler.Outcome>, StoreError>) -> Bool {
        let time = node.now()
        guard message.kind == .request, let outcome = (try? result.get())?.outcome,
            let command = handler.change(message, after: outcome, at: time),
            let turns = handler.turns(of: message, after: outcome, at: time)
        else { return false }
        handler.committed(message, part: outcome)
        // It was admitted as a small one.
        let isAdmitted = budget.tryAcquire(message.cost, leaving: reserved.fromLargeRequests)
        budget.release(message.cost)
        if isAdmitted {
            add(Part(message: message, answer: answer, turns: turns, command: claimed(command, for: message), isFirst: false))
        } else {
            node.counters.add(.shedRequest)
            node.cluster.finished(message.hash)
            _ = answer.fail(StoreError(code: .unavailable, message: "too many requests wait"))
        }
        return true
    }

    /// Commits the parts whose turn it is, unless others are being committed.
    func commitNextParts() {
        while true {
            let next = turns.withLock { $0.next() }
            guard !next.isEmpty else { return }
            var parts: [Part] = []
            for part in next {
                // Nothing more is done for a request that was answered with an error, because it took too long.
                if part.answer.isOpen { parts.append(part) } else { giveUp(part) }
            }
            if !parts.isEmpty {
                return node.store.submit(parts.map(\.command)) { [self, parts] in committed(parts, $0) }
            }
            turns.withLock { $0.ended() }
        }
    }

    private func committed(_ parts: [Part], _ results: [Result<Claimed<Handler.Outcome>, StoreError>]) {
        let time = node.now()
        var ended: [(part: Part, result: Result<Claimed<Handler.Outcome>, StoreError>)] = []
        var queued: [QueuedDelivery] = []
        for (part, result) in zip(parts, results) {
            guard let outcome = (try? result.get())?.outcome else {
                ended.append((part, result))
                continue
            }
            // The spans of a trace follow each other: those of later parts are not in it.
            if part.isFirst { part.message.times?.trace?.mark(.committed) }
            queued += handler.queued(by: outcome)
            if let command = handler.change(part.message, after: outcome, at: time),
                let turns = handler.turns(of: part.message, after: outcome, at: time)
            {
                let next = claimed(command, for: part.message)
                add(Part(message: part.message, answer: part.answer, turns: turns, command: next, isFirst: false))
            } else {
                ended.append((part, result))
            }
        }
        node.counters.add(.notificationQueued, queued.count)
        node.delivery.enqueue(queued)
        // Before the next parts begin: with the last of them a request ends, and the deliveries of all its parts must be known.
        for (part, result) in zip(parts, results) {
            if let outcome = (try? result.get())?.outcome { handler.committed(part.message, part: outcome) }
        }
        turns.withLock { $0.ended() }
        Task { [ended] in
            for (part, result) in ended {
                finish(part.message, answer: part.answer, result: result)
                budget.release(part.message.cost)
            }
            commitNextParts()
        }
    }

    private func giveUp(_ part: Part) {
        node.counters.add(.shedRequest)
        node.cluster.finished(part.message.hash)
        budget.release(part.message.cost)
    }
}
