/// Matches answers to messages by their topic, without decrypting them, to measure latencies.
///
/// Senders on the same partition of 5,000 can't be distinguished. Their answers are matched in the order of the messages: two that wait at the same
/// time may be swapped, which does not change the sum of latencies and hardly affects percentiles.
struct AnswerMatcher<Topic: Hashable & Sendable>: Sendable {
    /// Send times of unanswered messages, the oldest first.
    private var waiting: [Topic: [UInt64]] = [:]
    private(set) var waitingCount = 0

    /// - Parameter time: in nanoseconds of ``Clock/uptime()``.
    mutating func asked(_ topic: Topic, at time: UInt64) {
        waiting[topic, default: []].append(time)
        waitingCount += 1
    }

    /// Nanoseconds since the message was sent; nil if no message waits on this topic.
    mutating func answered(_ topic: Topic, at time: UInt64) -> UInt64? {
        guard var times = waiting.removeValue(forKey: topic) else { return nil }
        let asked = times.removeFirst()
        if !times.isEmpty { waiting[topic] = times }
        waitingCount -= 1
        return time > asked ? time - asked : 0
    }
}
