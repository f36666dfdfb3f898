public import Prometheus

/// Every metric of a node, by the name that it is scraped by: there are no others.
public enum Metric: String, CaseIterable, Sendable {
    case received = "waku_push_messages_received_total"
    case foreign = "waku_push_messages_foreign_total"
    case ours = "waku_push_messages_ours_total"
    case duplicates = "waku_push_messages_duplicate_total"
    case opened = "waku_push_messages_opened_total"
    case valid = "waku_push_messages_valid_total"
    case dropped = "waku_push_messages_dropped_total"
    case limited = "waku_push_limited_total"
    case handled = "waku_push_messages_handled_total"
    case sinceReceipt = "waku_push_message_since_receipt_seconds"
    case sinceSent = "waku_push_message_since_sent_seconds"
    case replyDelay = "waku_push_reply_delay_seconds"

    case requestsAnswered = "waku_push_requests_answered_total"
    case requestsAnsweredAtOnce = "waku_push_requests_answered_without_gorush_total"
    case reports = "waku_push_reports_total"
    case answersPublished = "waku_push_answers_published_total"
    case answersRepeated = "waku_push_answers_repeated_total"
    case answersLost = "waku_push_answers_lost_total"
    case answersChecked = "waku_push_answers_checked_total"

    case notificationsQueued = "waku_push_notifications_queued_total"
    case notificationsEnded = "waku_push_notifications_ended_total"
    case notificationsRetried = "waku_push_notifications_retried_total"
    case notificationsUncounted = "waku_push_notifications_uncounted_total"
    case posts = "waku_push_gorush_posts_total"
    case postTime = "waku_push_gorush_post_seconds"
    case breaker = "waku_push_gorush_breaker"
    case breakerOpened = "waku_push_gorush_breaker_opened_total"
    case slow = "waku_push_gorush_slow"
    case slowed = "waku_push_gorush_slowed_total"
    case postsUnanswered = "waku_push_gorush_posts_unanswered"
    case postsUnansweredAge = "waku_push_gorush_oldest_unanswered_seconds"
    case batchLimit = "waku_push_gorush_batch_limit"
    case outbox = "waku_push_outbox_notifications"
    case outboxAge = "waku_push_outbox_oldest_age_seconds"

    case tokenFailures = "waku_push_token_failures_total"
    case tokenFailuresSetAside = "waku_push_token_failures_set_aside_total"
    case registrationsRemoved = "waku_push_registrations_removed_total"
    case feedback = "waku_push_feedback_total"

    case registrations = "waku_push_registrations"
    case topics = "waku_push_topics"
    case topicKeysDerived = "waku_push_topic_keys_derived_total"
    case topicKeysDerivedAhead = "waku_push_topic_keys_derived_ahead_total"

    case relayAttached = "waku_push_relay_attached"
    case relaysDemoted = "waku_push_relays_demoted"
    case relayLastMessage = "waku_push_relay_last_message_timestamp_seconds"
    case relaySeenUntil = "waku_push_relay_seen_until_timestamp_seconds"
    case relayGaps = "waku_push_relay_gaps_total"
    case relayRecovered = "waku_push_relay_messages_recovered_total"
    case relayPeers = "waku_push_relay_peers"
    case relayMeshPeers = "waku_push_relay_mesh_peers"
    case relayBytes = "waku_push_relay_peer_bytes_total"
    case relayGossip = "waku_push_relay_gossip_messages_total"
    case relayMisbehaviour = "waku_push_relay_misbehaviour_total"

    case alarms = "waku_push_alarms_total"
    case alarmActive = "waku_push_alarm_active"
    case queueDepth = "waku_push_queue_depth"
    case queueLimit = "waku_push_queue_limit"
    case databaseSize = "waku_push_database_bytes"
    case storeWorks = "waku_push_store_works"
    case ready = "waku_push_ready"

    case processorTime = "process_cpu_seconds_total"
    case residentMemory = "process_resident_memory_bytes"
    case virtualMemory = "process_virtual_memory_bytes"
    case openFiles = "process_open_fds"
    case openFileLimit = "process_max_fds"
    case startTime = "process_start_time_seconds"
}

extension Metric {
    public var definition: MetricDefinition {
        MetricDefinition(name: rawValue, help: help, kind: kind, labels: labels.map { $0.labelName })
    }

    /// The types whose cases are all the values of its labels.
    public var labels: [any MetricLabel.Type] {
        switch self {
        case .valid, .replyDelay: [KindLabel.self]
        case .dropped: [LossStageLabel.self, LossReasonLabel.self]
        case .limited: [LimitLabel.self]
        case .handled: [KindLabel.self, OutcomeLabel.self]
        case .sinceReceipt, .sinceSent: [StageLabel.self, KindLabel.self]
        case .reports: [ReportLabel.self]
        case .answersChecked: [ConfirmationLabel.self]
        case .notificationsEnded: [NotificationEndLabel.self]
        case .posts: [PostClassLabel.self, StatusLabel.self]
        case .breaker: [EndpointLabel.self, BreakerLabel.self]
        case .slow, .postsUnanswered, .postsUnansweredAge, .batchLimit: [EndpointLabel.self]
        case .tokenFailures: [TokenFailureLabel.self]
        case .tokenFailuresSetAside: [SetAsideLabel.self]
        case .registrationsRemoved: [RemovalLabel.self]
        case .feedback: [FeedbackLabel.self]
        case .registrations: [PlatformLabel.self, RegistrationStateLabel.self]
        case .relayPeers: [DirectionLabel.self]
        case .relayBytes: [FlowLabel.self]
        case .relayGossip: [GossipLabel.self]
        case .relayMisbehaviour: [MisbehaviourLabel.self]
        case .alarms, .alarmActive: [AlarmKind.self]
        case .queueDepth, .queueLimit: [QueueLabel.self]
        default: []
        }
    }

    private var kind: MetricDefinition.Kind {
        switch self {
        case .sinceReceipt, .replyDelay: .histogram(bounds: Self.fineBounds)
        case .postTime: .histogram(bounds: Self.fineBounds + [30, 60])
        case .sinceSent: .histogram(bounds: Self.coarseBounds)
        default: rawValue.hasSuffix("_total") ? .counter : .gauge
        }
    }

    /// From half a millisecond to what nobody waits for any more; posts to gorush wait longer for their answers.
    private static let fineBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10]
    /// Beyond how long a client waits for an answer, up to the age at which requests are dropped.
    private static let coarseBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 600]

    private var help: String {
        switch self {
        case .received: "Messages that the relay brought: foreign and ours."
        case .foreign: "Messages on topics of others."
        case .ours: "Messages on the node's own topics and its registrants': duplicate, opened, or dropped while opening."
        case .duplicates: "Messages of ours that were handled already."
        case .opened: "Messages that were decrypted, with a valid signature of the Waku payload: valid, or dropped while reading."
        case .valid: "Messages that ask for something: handled, or dropped while handling."
        case .dropped: "Messages of ours that ended early, by how far they came, and why."
        case .limited: "What was asked beyond a limit, and dropped or refused for it."
        case .handled: "Messages that were dealt with, by what came of it. What it says of stored things is on disk."
        case .sinceReceipt: "From when a message came in until it was valid, durable, accepted by gorush, answered."
        case .sinceSent: "The same from the sender's timestamp on, by the sender's clock; stage received is the network's part."
        case .replyDelay:
            "How long answers to queries and requests were known before they were due (--reply-delay); not part of the time to answer."
        case .requestsAnswered: "Requests whose answer was made."
        case .requestsAnsweredAtOnce: "Requests that were answered INTERNAL_ERROR without a wait, because gorush is given up."
        case .reports: "What requests were told, device by device."
        case .answersPublished: "Answers that a relay took for publication."
        case .answersRepeated: "Answers that were published again because they were not in the relay's store."
        case .answersLost: "Answers that were never published: the relay did not take them in time, or too many waited."
        case .answersChecked: "Whether published answers are known to have reached the network."
        case .notificationsQueued: "Notifications that were put into the outbox."
        case .notificationsEnded: "Notifications that left the outbox, and how."
        case .notificationsRetried: "Posts of a notification that are to be repeated."
        case .notificationsUncounted: "Notifications in posts that gorush accepted, but did not count: a platform is disabled there."
        case .posts: "Posts to gorush, by what came of them and the status of HTTP; none when there was no answer."
        case .postTime: "How long posts to gorush took, whatever came of them."
        case .breaker: "1 for the state that the circuit breaker before a gorush is in."
        case .breakerOpened: "How often gorush was given up for a while."
        case .slow: "1 while a post to a gorush is overdue, or was and nothing has been answered since."
        case .slowed: "How often a gorush became slow."
        case .postsUnanswered: "Posts that a gorush has not answered yet."
        case .postsUnansweredAge: "How long the oldest of them has been unanswered."
        case .batchLimit: "Notifications that the next post to a gorush may have, by the time that it took for others."
        case .outbox: "Notifications that wait for gorush."
        case .outboxAge: "How long ago the oldest notification in the outbox was asked for; 0 when there is none."
        case .tokenFailures: "Tokens that a notification did not reach, by what that says of them."
        case .tokenFailuresSetAside: "Token failures that were not held against a token, and why."
        case .registrationsRemoved: "Registrations that the node ended, because of their tokens or because nobody renewed them."
        case .feedback: "Calls of gorush's feedback hook."
        case .registrations: "Installations, by platform and state. Unregistered ones have no platform."
        case .topics: "Topics on which queries are answered."
        case .topicKeysDerived: "Symmetric keys of query topics that were derived because a query needed them, at 12 ms each."
        case .topicKeysDerivedAhead: "Symmetric keys of query topics that were derived ahead of the first query, at idle priority."
        case .relayAttached: "1 while messages can come in."
        case .relaysDemoted: "Relays that publish last, because other relays' stores had none of the answers that they published."
        case .relayLastMessage: "When the relay last brought a message, of anybody's; when the node started, before the first."
        case .relaySeenUntil: "Up to when nothing is missing, on the pubsub topic that is furthest behind."
        case .relayGaps: "Times that messages may have been lost between the relay and this node."
        case .relayRecovered: "Messages that came from the relay's store alone."
        case .relayPeers: "Nodes that this one is connected to over libp2p, by who dialled."
        case .relayMeshPeers:
            "Those of them that are in a mesh, or filter nodes that took this node's topics: with none, no messages come in."
        case .relayBytes: "Bytes from and to these nodes, on the wire."
        case .relayGossip: "Messages in gossip, by what became of them; forwarded counts copies."
        case .relayMisbehaviour: "What nodes did that is held against them, beside invalid messages."
        case .alarms: "Alarms that were raised."
        case .alarmActive: "1 while an alarm lasts: one that happens rather than lasts counts for ten minutes or an hour."
        case .queueDepth: "What waits inside of the node."
        case .queueLimit: "Up to where it may wait; beyond, it is shed or whoever brings it waits."
        case .databaseSize: "The database and its log."
        case .storeWorks: "1 while the database can be written and read."
        case .ready: "1 while nothing stands in the way: what /readyz says."
        case .processorTime: "Processor time, of user and system."
        case .residentMemory: "Memory in use."
        case .virtualMemory: "Address space in use."
        case .openFiles: "Open file descriptors."
        case .openFileLimit: "How many there may be."
        case .startTime: "When the process started."
        }
    }

    /// The lines of the table in the article on metrics.
    static var markdownTable: [String] {
        let rows = allCases.map { metric in
            let labels = metric.labels.map { "`\($0.labelName)`" }.joined(separator: ", ")
            return "| `\(metric.rawValue)` | \(metric.definition.typeName) | \(labels.isEmpty ? "–" : labels) | \(metric.help) |"
        }
        return ["| metric | type | labels | meaning |", "|---|---|---|---|"] + rows
    }
}
