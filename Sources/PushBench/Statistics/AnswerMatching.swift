import Waku

/// Tells how long each question waited, without opening an answer: by the topic that it comes on.
///
/// Askers on one partition of 5,000 can't be told apart. Their answers are taken in the order of the questions: two that wait at once may
/// be exchanged, which changes neither their sum nor, among thousands, a percentile.
struct AnswerMatcher<Topic: Hashable & Sendable>: Sendable {
    /// When questions were asked, the oldest first.
    private var waiting: [Topic: [UInt64]] = [:]
    private(set) var waitingCount = 0

    /// - Parameter time: in nanoseconds of ``Clock/uptime()``, as below.
    mutating func asked(_ topic: Topic, at time: UInt64) {
        waiting[topic, default: []].append(time)
        waitingCount += 1
    }

    /// Nanoseconds since the question; nil when nobody asked.
    mutating func answered(_ topic: Topic, at time: UInt64) -> UInt64? {
        guard var times = waiting.removeValue(forKey: topic) else { return nil }
        let asked = times.removeFirst()
        if !times.isEmpty { waiting[topic] = times }
        waitingCount -= 1
        return time > asked ? time - asked : 0
    }
}
