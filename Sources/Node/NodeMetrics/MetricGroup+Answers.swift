extension MetricGroup {
    /// Answers: publication and confirmation.
    package static let answers = MetricGroup(
        metrics: [.answersPublished, .answersRepeated, .answersLost, .answersChecked],
        counters: [.answerPublished, .answerLost, .answerConfirmed, .answerRepeated, .answerUnconfirmed, .answerUnchecked])
}

extension Metric {
    package static let answersPublished = Metric(
        "waku_push_answers_published_total", help: "Answers that a relay accepted for publication.")
    package static let answersRepeated = Metric(
        "waku_push_answers_repeated_total", help: "Answers that were published again because they were not in the relay's store.")
    package static let answersLost = Metric(
        "waku_push_answers_lost_total",
        help: "Answers that were not published: the relay did not accept them in time, or more waited than it publishes.")
    package static let answersChecked = Metric(
        "waku_push_answers_checked_total", ConfirmationLabel.self,
        help: "Published answers, by whether they were confirmed to have reached the network.")
}

extension Counter {
    package static let answerPublished = Counter("answer published", .answersPublished)
    package static let answerLost = Counter("answer not published", .answersLost)
    package static let answerConfirmed = Counter("answer confirmed", .answersChecked, ConfirmationLabel.confirmed)
    package static let answerRepeated = Counter("answer published again", .answersRepeated)
    package static let answerUnconfirmed = Counter("answer unconfirmed", .answersChecked, ConfirmationLabel.unconfirmed)
    package static let answerUnchecked = Counter("answer not looked up: too many at once", .answersChecked, ConfirmationLabel.unchecked)
}

package enum ConfirmationLabel: String, MetricLabel {
    package static let labelName = "result"
    case confirmed, unconfirmed, unchecked
}
