import Core
import Waku

/// Messages delivered as fast as the node accepts them, until all are answered.
struct FullSpeed {
    /// Answers per second, from the first delivery to the last answer.
    let rate: Double
    /// CPU time of the whole process per message.
    let cpuMicroseconds: Double
    let count: Int
    let unanswered: Int

    static func measure(_ questions: [Question], relay: BenchRelay, batch: Int) async throws -> FullSpeed {
        let batches = questions.chunks(of: batch).map { $0.map(\.message) }
        let answered = relay.answers
        let cpu = Clock.process()
        let start = Clock.uptime()
        await relay.feed(batches)
        _ = try await waitForCount(answered + questions.count) { relay.answers }
        let end = relay.lastAnswerTime
        // Work after an answer is part of its cost.
        try await Task.sleep(for: .milliseconds(20))
        let cpuEnd = Clock.process()
        let answers = relay.answers - answered
        return FullSpeed(
            rate: answers > 0 && end > start ? Double(answers) * 1e9 / Double(end - start) : 0,
            cpuMicroseconds: Double(cpuEnd - cpu) / 1000 / Double(max(1, questions.count)), count: questions.count,
            unanswered: max(0, questions.count - answers))
    }
}

/// Messages delivered when they are due, independently of earlier ones. Latency is measured from the due time.
struct OpenLoop {
    let rate: Double
    /// CPU time of the whole process per message, those of a flood included.
    let cpuMicroseconds: Double
    let latencies: LatencyHistogram
    let count: Int
    let unanswered: Int

    /// - Parameters:
    ///   - flood: additional messages, a multiple of `questions`; their answers are not measured.
    ///   - rate: measured messages per second.
    static func measure(_ questions: [Question], amid flood: [Question] = [], rate: Double, relay: BenchRelay) async throws -> OpenLoop {
        let share = flood.count / max(questions.count, 1)
        var messages: [ReceivedMessage] = []
        for (index, question) in questions.enumerated() {
            messages.append(question.message)
            messages += flood[index * share..<(index + 1) * share].map(\.message)
        }
        let answered = relay.answers
        var due: [UInt64] = []
        let cpu = Clock.process()
        let answers = try await relay.recording {
            due = await relay.feed(messages, rate: rate * Double(share + 1))
            // It is unknown how many messages of a flood are answered, so this waits until no more answers come.
            let timeout = flood.isEmpty ? BenchRelay.timeout : .seconds(2)
            _ = try await waitForCount(answered + messages.count, timeout: timeout) { relay.answers }
        }
        let cpuMicroseconds = Double(Clock.process() - cpu) / 1000 / Double(max(1, messages.count))
        var matcher = AnswerMatcher<ContentTopic>()
        for (index, question) in questions.enumerated() where index * (share + 1) < due.count {
            matcher.asked(question.answerTopic, at: due[index * (share + 1)])
        }
        let floodTopics = Set(flood.map(\.answerTopic))
        var latencies = LatencyHistogram()
        for answer in answers where !floodTopics.contains(answer.topic) {
            if let latency = matcher.answered(answer.topic, at: answer.time) { latencies.record(nanoseconds: latency) }
        }
        return OpenLoop(
            rate: rate, cpuMicroseconds: cpuMicroseconds, latencies: latencies, count: questions.count, unanswered: matcher.waitingCount)
    }
}
