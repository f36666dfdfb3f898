import Core

extension MetricGroup {
    /// The node as a whole: alarms, queues, load shedding, the database, readiness.
    package static let node = MetricGroup(
        metrics: [.alarms, .alarmActive, .queueDepth, .queueLimit, .databaseSize, .storeWorks, .ready, .clockAhead, .buildInfo, .traces],
        counters: [.shedWaitingQuery, .shedQuery, .shedRequest, .failedTopicKey, .failedStore, .traceExported, .traceDropped, .traceFailed])
}

extension Metric {
    package static let alarms = Metric("waku_push_alarms_total", AlarmKind.self, help: "Alarms that were raised.")
    package static let alarmActive = Metric(
        "waku_push_alarm_active", AlarmKind.self,
        help: "1 while an alarm is active: one without a defined end is active for ten minutes or an hour.")
    package static let queueDepth = Metric(
        "waku_push_queue_depth", ProtocolLabel.self, QueueLabel.self, help: "Length of the node's queues.")
    package static let queueLimit = Metric(
        "waku_push_queue_limit", ProtocolLabel.self, QueueLabel.self,
        help: "Limit of these queues; beyond it messages are shed, or the relay waits.")
    package static let databaseSize = Metric("waku_push_database_bytes", help: "Size of the database and its write-ahead log.")
    package static let storeWorks = Metric("waku_push_store_works", help: "1 while the database can be written and read.")
    package static let clockAhead = Metric(
        "waku_push_clock_ahead_seconds",
        help:
            "By how much this machine's clock is certainly ahead of the database's (several nodes), or of the Waku node's. Below 0: behind."
    )
    package static let buildInfo = Metric("waku_push_build_info", VersionLabel.self, help: "1, with the version of the running program.")
    package static let traces = Metric(
        "waku_push_traces_total", TraceLabel.self,
        help: "Traces for the collector of --otlp: exported, dropped because too many waited, or not accepted by the collector.")
    package static let ready = Metric("waku_push_ready", help: "1 while the node is ready, as /readyz reports.")
}

extension Counter {
    package static let shedWaitingQuery = dropped("shed: query while too much waits for topic keys", .opening, .shedQuery)
    package static let shedQuery = dropped("shed: query while too much waits", .handling, .shedQuery)
    package static let shedRequest = dropped("shed: request while too much waits to be stored", .handling, .shedRequest)
    package static let failedTopicKey = dropped("failed: the store did not tell the topic", .opening, .storeFailed)
    package static let failedStore = dropped("failed: the store did not keep it", .handling, .storeFailed)
}

extension Counter {
    package static let traceExported = Counter("trace exported", .traces, TraceLabel.exported)
    package static let traceDropped = Counter("trace dropped: too many waited", .traces, TraceLabel.dropped)
    package static let traceFailed = Counter("trace not taken by the collector", .traces, TraceLabel.failed)
}

/// The result of a trace that was to be exported.
package enum TraceLabel: String, MetricLabel {
    package static let labelName = "result"
    case exported
    /// Too many traces waited for their export.
    case dropped
    /// The collector did not take it. It is not posted again.
    case failed
}

/// The version of a program: the only label without a fixed list of values, as it is the program's own constant.
package struct VersionLabel: MetricLabel, RawRepresentable {
    package static let labelName = "version"
    package static let allCases: [VersionLabel] = []

    package let rawValue: String

    /// - Returns: nil unless it is 1 to 64 letters, digits and `.+-~_`.
    package init?(rawValue: String) {
        guard (1...64).contains(rawValue.utf8.count),
            rawValue.utf8.allSatisfy({ $0.isLetterOrDigit || ".+-~_".utf8.contains($0) })
        else { return nil }
        self.rawValue = rawValue
    }
}

/// The queues of a node.
public enum QueueLabel: String, MetricLabel {
    package static let labelName = "queue"
    /// Messages accepted and not yet stored, in units of 4 KiB, at least one unit per message.
    case work
    /// Queries waiting for the key of their topic, in the same units.
    case topicKeys = "topic_keys"
    /// Registrants whose topic key is to be derived ahead of the first query.
    case topicKeysAhead = "topic_keys_ahead"
    /// Requests waiting for gorush.
    case requests
    /// Answers to be sealed and published.
    case answers
    /// Answers to be looked up in the relay's store.
    case confirmations
    /// Failures from gorush's feedback hook.
    case feedback
}
