import Foundation
import Synchronization
import Core
import Waku

/// A relay for benchmarks: delivers messages and counts answers, with minimal cost of its own.
final class BenchRelay: Relay {
    typealias Deliver = @Sendable ([ReceivedMessage]) async -> Void

    /// An answer, and when it was published.
    struct Answer {
        let topic: ContentTopic
        let time: UInt64
    }

    /// Time after the last answer until the missing ones are given up.
    static let timeout = Duration.seconds(20)

    private let deliver = Mutex<Deliver?>(nil)
    private let answerCount = Atomic<Int>(0)
    private let lastAnswer = Atomic<UInt64>(0)
    private let isRecording = Atomic<Bool>(false)
    private let recorded = Mutex<[Answer]>([])

    var state: RelayState { .attached }

    func run(deliver: @escaping Deliver) async {
        self.deliver.withLock { $0 = deliver }
        while (try? await Task.sleep(for: .seconds(3600))) != nil {}
        self.deliver.withLock { $0 = nil }
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let time = Clock.uptime()
        if isRecording.load(ordering: .relaxed) {
            recorded.withLock { $0.append(Answer(topic: message.contentTopic, time: time)) }
        }
        lastAnswer.store(time, ordering: .relaxed)
        answerCount.add(1, ordering: .releasing)
        return .confirmed
    }

    /// Number of answers since the start.
    var answers: Int { answerCount.load(ordering: .acquiring) }
    /// The time of the last answer.
    var lastAnswerTime: UInt64 { lastAnswer.load(ordering: .relaxed) }

    // MARK: Feeding

    /// Delivers a batch as it is.
    func deliver(_ batch: [ReceivedMessage]) async {
        await attached()?(batch)
    }

    /// Delivers batches as fast as the node accepts them, as if sent at that moment.
    func feed(_ batches: [[ReceivedMessage]]) async {
        guard let deliver = await attached() else { return }
        for batch in batches where !Task.isCancelled { await deliver(batch.map { $0.sentNow() }) }
    }

    /// Delivers each message when it is due, as if sent at that moment, independently of earlier ones. Messages that become due while the node takes a batch form the next batch.
    ///
    /// - Returns: the due time of each message, from which latency is measured, so that it includes waiting for the node.
    func feed(_ messages: [ReceivedMessage], rate: Double) async -> [UInt64] {
        guard let deliver = await attached() else { return [] }
        let start = Clock.uptime() + 10_000_000
        let due = messages.indices.map { start + UInt64(Double($0) * 1e9 / rate) }
        var next = 0
        while next < messages.count {
            let now = Clock.uptime()
            var end = next
            while end < due.count, due[end] <= now { end += 1 }
            if end == next {
                try? await Task.sleep(for: .nanoseconds(Int64(due[next] - now)), tolerance: .zero)
                if Task.isCancelled { break }
                continue
            }
            await deliver(messages[next..<end].map { $0.sentNow() })
            next = end
        }
        return due
    }

    /// Records the answers while `body` runs.
    func recording(_ body: () async throws -> Void) async rethrows -> [Answer] {
        recorded.withLock { $0 = [] }
        isRecording.store(true, ordering: .relaxed)
        defer { isRecording.store(false, ordering: .relaxed) }
        try await body()
        return recorded.withLock { answers in
            defer { answers = [] }
            return answers
        }
    }

    private func attached() async -> Deliver? {
        while !Task.isCancelled {
            if let deliver = deliver.withLock({ $0 }) { return deliver }
            try? await Task.sleep(for: .milliseconds(1))
        }
        return nil
    }
}

extension ReceivedMessage {
    /// The message as if sent now. Messages are made ahead; with the time at which they were made, those at the end of a run of 10 minutes would be too
    /// old for the node, which drops such requests without an answer.
    func sentNow() -> ReceivedMessage { sent(at: .now()) }

    func sent(at time: Timestamp) -> ReceivedMessage {
        var message = message
        message.timestamp = time
        return ReceivedMessage(message: message, pubsubTopic: pubsubTopic)
    }
}
