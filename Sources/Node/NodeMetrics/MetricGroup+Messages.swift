import RateLimits

extension MetricGroup {
    /// Messages of all protocols. Protocols count dropped, limited and handled messages under these metrics too.
    package static let messages = MetricGroup(
        metrics: [
            .received, .foreign, .ours, .duplicates, .opened, .valid, .dropped, .limited, .refused, .handled, .sinceReceipt, .sinceSent,
            .replyDelay,
        ],
        counters: [
            .droppedMalformedEnvelope, .droppedOtherKind, .droppedEmpty, .droppedBadSignature, .droppedUnsealable, .droppedMalformedMessage,
            .droppedTooMany, .droppedOldRequest, .droppedNoMessageID, .droppedLimited, .segment,
            .received, .foreign, .ours, .duplicate, .droppedOversized, .droppedUndecryptable, .droppedMalformedPayload, .droppedUnsigned,
        ])
}

extension Metric {
    package static let received = Metric("waku_push_messages_received_total", help: "Messages received from the relay: foreign and ours.")
    package static let foreign = Metric("waku_push_messages_foreign_total", help: "Messages on topics that the node does not listen on.")
    package static let ours = Metric(
        "waku_push_messages_ours_total",
        help: "Messages on the topics of the node and its registrants: duplicate, opened, or dropped at the stage opening.")
    package static let duplicates = Metric("waku_push_messages_duplicate_total", help: "Messages of ours that were handled already.")
    package static let opened = Metric(
        "waku_push_messages_opened_total",
        help: "Messages that were decrypted and have a Waku signature: valid, or dropped at the stage reading.")
    package static let valid = Metric(
        "waku_push_messages_valid_total", ProtocolLabel.self, KindLabel.self,
        help: "Valid commands: handled, or dropped at the stage handling.")
    package static let dropped = Metric(
        "waku_push_messages_dropped_total", LossStageLabel.self, LossReasonLabel.self,
        help: "Messages of ours that were dropped, by stage and reason.")
    package static let limited = Metric(
        "waku_push_limited_total", ProtocolLabel.self, RateLimitTable.Refusal.self,
        help: "Messages and notifications that were dropped or refused because of a limit.")
    package static let refused = Metric(
        "waku_push_refused_total", ProtocolLabel.self, RateLimitTable.Refusal.self, Standing.self,
        help: "Work that was refused or displaced because of a limit, by the standing of its payer.")
    package static let handled = Metric(
        "waku_push_messages_handled_total", ProtocolLabel.self, KindLabel.self, OutcomeLabel.self,
        help: "Messages that were handled, by outcome. Stored changes are on disk.")
    package static let sinceReceipt = Metric(
        "waku_push_message_since_receipt_seconds", ProtocolLabel.self, StageLabel.self, KindLabel.self, buckets: fineBuckets,
        help: "Time from the receipt of a message until it was valid, durable, accepted by gorush, answered.")
    package static let sinceSent = Metric(
        "waku_push_message_since_sent_seconds", ProtocolLabel.self, StageLabel.self, KindLabel.self, buckets: coarseBuckets,
        help: "The same from the sender's timestamp, by the sender's clock; stage received is the delay of the network.")
    package static let replyDelay = Metric(
        "waku_push_reply_delay_seconds", ProtocolLabel.self, KindLabel.self, buckets: fineBuckets,
        help: "How long answers were held until they were due (--reply-delay); not part of the time to answer.")

    /// In seconds: from half a millisecond to more than clients wait.
    package static let fineBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10]
    /// In seconds: up to the age at which requests are dropped.
    package static let coarseBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 600]
}

extension Counter {
    package static let received = Counter("received", .received)
    package static let foreign = Counter("foreign", .foreign)
    package static let ours = Counter("ours", .ours)
    package static let duplicate = Counter("duplicate", .duplicates)
    package static let droppedOversized = dropped("dropped: over 1 MiB", .opening, .oversized)
    package static let droppedUndecryptable = dropped("dropped: undecryptable", .opening, .undecryptable)
    package static let droppedMalformedEnvelope = dropped("dropped: malformed envelope", .reading, .malformedEnvelope)
    package static let droppedOtherKind = dropped("dropped: other kind", .reading, .otherKind)
    package static let droppedEmpty = dropped("dropped: empty envelope", .reading, .empty)
    package static let droppedBadSignature = dropped("dropped: bad signature", .reading, .badSignature)
    package static let droppedUnsealable = dropped("dropped: registration that can't be unsealed", .reading, .unsealable)
    /// A message that its protocol cannot parse.
    public static let droppedMalformedMessage = dropped("dropped: malformed message", .reading, .malformedMessage)
    package static let droppedTooMany = dropped("dropped: too many entries", .reading, .tooMany)
    /// A request that is older than the operator allows.
    public static let droppedOldRequest = dropped("dropped: request too old", .reading, .tooOld)
    package static let droppedNoMessageID = dropped("dropped: request without message id", .reading, .noMessageID)
    package static let droppedLimited = dropped("dropped: over a limit", .reading, .limited)
    package static let segment = dropped("segment that completes nothing yet, or never will", .reading, .segment)
    package static let droppedMalformedPayload = dropped("dropped: malformed Waku payload", .opening, .malformedPayload)
    package static let droppedUnsigned = dropped("dropped: unsigned Waku payload", .opening, .unsigned)

    static func dropped(_ name: String, _ stage: LossStageLabel, _ reason: LossReasonLabel) -> Counter {
        Counter(name, .dropped, stage, reason)
    }

    package static func handled(_ name: String, _ protocol: ProtocolLabel, _ kind: KindLabel, _ outcome: OutcomeLabel) -> Counter {
        Counter(name, .handled, `protocol`, kind, outcome)
    }
}
