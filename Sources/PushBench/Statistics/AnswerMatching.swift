import Waku

/// Tells how long each question waited, without opening an answer: by the topic that it comes on.
///
/// Askers on one partition of 5,000 can't be told apart. Their answers are taken in the order of the questions: two that wait at once may
/// be exchanged, which changes neither their sum nor, among thousands, a percentile.
enum AnswerMatching {
    static func latencies(
        due: [UInt64], topics: [ContentTopic], answers: [BenchRelay.Answer]
    ) -> (latencies: LatencyHistogram, unanswered: Int) {
        var waiting: [ContentTopic: [UInt64]] = [:]
        for (time, topic) in zip(due, topics).reversed() { waiting[topic, default: []].append(time) }
        var histogram = LatencyHistogram()
        for answer in answers {
            guard let asked = waiting[answer.topic]?.popLast() else { continue }
            histogram.record(nanoseconds: answer.time > asked ? answer.time - asked : 0)
        }
        return (histogram, due.count - Int(histogram.count))
    }
}
