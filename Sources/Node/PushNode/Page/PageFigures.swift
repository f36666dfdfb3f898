import Foundation
package import NodeAPI
package import NodeMetrics
package import Core

/// The figures of the status page and `/status.json`.
package struct PageFigures: Sendable {
    package struct Step: Sendable, Encodable {
        package let name: String
        /// Within the time span of the charts.
        package let lately: Int
        /// Since the start.
        package let total: Int
    }

    package struct Registrations: Sendable, Encodable {
        package let apn: Int
        package let firebase: Int
        package let huawei: Int
        package let webPush: Int
        package let inDoubt: Int
        package let unregistered: Int

        /// The number of all registered devices.
        var total: Int { apn + firebase + huawei + webPush }
    }

    package struct ProtocolLines: Sendable, Encodable {
        package struct Line: Sendable, Encodable {
            package let name: String
            package let value: String
        }

        package let name: String
        package let lines: [Line]

        package init(name: String, lines: [(name: String, value: String)]) {
            self.name = name
            self.lines = lines.map { Line(name: $0.name, value: $0.value) }
        }
    }

    package struct Line: Sendable, Encodable {
        package let name: String
        /// One for each of ``Charts/times``.
        package let values: [Double]
    }

    package struct Chart: Sendable, Encodable {
        package let title: String
        package let unit: String
        package let lines: [Line]
    }

    package struct Endpoint: Sendable, Encodable {
        package let name: String
        package let breaker: String
        package let waiting: Int
    }

    /// A reason why the node is not ready.
    package struct Obstacle: Sendable {
        package let text: String
        /// How to remove it; nil if that is unknown, or the text says it.
        package let remedy: String?

        package init(_ text: String, remedy: String? = nil) {
            self.text = text
            self.remedy = remedy
        }

        init(_ finding: Finding) {
            self.init("\(finding.check): \(finding.text)", remedy: finding.remedy)
        }
    }

    package var time = Timestamp(rawValue: 0)
    /// Since the start of the node.
    package var uptime = Duration.zero
    package var obstacles: [Obstacle] = []

    /// Whether the node is attached to a Waku network, or is to be.
    package var hasRelay = true
    /// Why the relay is detached; nil while it is attached.
    package var relayObstacle: String?
    package var silence = Duration.zero
    package var isSilent = false
    package var gaps = 0
    package var recovered = 0

    package var breaker = BreakerLabel.closed
    /// Why the last post failed, while the breaker is not closed; else why gorush does not answer, if it does not.
    package var gorushFailure: String?
    /// The description of a slow gorush; nil if none is slow.
    package var gorushDelay: String?
    package var hasGorush = true
    /// The endpoints, if there are several.
    package var endpoints: [Endpoint] = []
    package var waiting = 0
    package var oldestWaiting: Duration?
    package var posts: [Step] = []

    package var storeFailure: String?
    package var databaseBytes = 0
    /// nil if they can't be read.
    package var registrations: Registrations?
    package var topics = 0
    /// The lines of each protocol, of Web Push and of the cluster.
    package var protocols: [ProtocolLines] = []
    /// nil for a single node.
    package var cluster: ClusterStatus?
    /// Why this node has no valid lease; nil while it has one, and for a single node.
    package var leaseFailure: String?
    /// Answers are held until this long after the receipt: see ``NodeConfiguration/replyDelay``.
    package var replyDelay = Duration.zero

    /// The steps of messages and of notifications.
    package var messages: [Step] = []
    /// Messages on topics of this identity that other nodes handled; nil for a single node.
    package var elsewhere: Step?
    package var notifications: [Step] = []
    /// Losses, the most frequent first.
    package var losses: [Step] = []
    /// The median and 99th percentile of the time to answer; nil without answers. Infinite beyond the last bucket.
    package var answerTimes: (half: Double, most: Double)?
    package var alarms: [Alarm] = []
    /// Warnings and errors of the log, latest first.
    package var errors: [ErrorTally.Entry] = []
    /// See ``NodeConfiguration/documentation``.
    package var documentation: String?
    /// The time span of the charts.
    package var span = Duration.zero
    package var chartTimes: [Timestamp] = []
    package var charts: [Chart] = []

    package var isReady: Bool { obstacles.isEmpty }

    /// Adds the registrations of a protocol.
    package mutating func add(_ other: Registrations) {
        let sum = registrations ?? Registrations(apn: 0, firebase: 0, huawei: 0, webPush: 0, inDoubt: 0, unregistered: 0)
        registrations = Registrations(
            apn: sum.apn + other.apn, firebase: sum.firebase + other.firebase, huawei: sum.huawei + other.huawei,
            webPush: sum.webPush + other.webPush, inDoubt: sum.inDoubt + other.inDoubt, unregistered: sum.unregistered + other.unregistered)
    }
}

// MARK: - JSON

extension PageFigures: Encodable {
    private enum Key: String, CodingKey {
        case time, uptimeSeconds, ready, obstacles, relay, gorush, store, registrations, messages, notifications, losses, alarms, charts
        case attached, lastMessageSeconds, silent, gaps, recovered, breaker, failure, delay, endpoints, waiting, oldestSeconds, posts,
            bytes,
            topics, cluster, leaseFailure, answerSeconds, half, most, replyDelaySeconds, elsewhere
        case remedies, article, errors, message, protocols
        case times, lines, kind, reason, since, last, count, active
    }

    package func encode(to encoder: any Encoder) throws {
        var root = encoder.container(keyedBy: Key.self)
        try root.encode(time.seconds, forKey: .time)
        try root.encode(uptime.seconds, forKey: .uptimeSeconds)
        try root.encode(isReady, forKey: .ready)
        try root.encode(obstacles.map(\.text), forKey: .obstacles)
        try root.encode(obstacles.map(\.remedy), forKey: .remedies)

        var relay = root.nestedContainer(keyedBy: Key.self, forKey: .relay)
        try relay.encode(hasRelay && relayObstacle == nil, forKey: .attached)
        try relay.encode(silence.seconds, forKey: .lastMessageSeconds)
        try relay.encode(isSilent, forKey: .silent)
        try relay.encode(gaps, forKey: .gaps)
        try relay.encode(recovered, forKey: .recovered)

        var gorush = root.nestedContainer(keyedBy: Key.self, forKey: .gorush)
        try gorush.encode(breaker.rawValue, forKey: .breaker)
        try gorush.encode(gorushFailure, forKey: .failure)
        try gorush.encode(gorushDelay, forKey: .delay)
        try gorush.encode(waiting, forKey: .waiting)
        try gorush.encode(endpoints, forKey: .endpoints)
        try gorush.encode(oldestWaiting?.seconds, forKey: .oldestSeconds)
        try gorush.encode(posts, forKey: .posts)

        var store = root.nestedContainer(keyedBy: Key.self, forKey: .store)
        try store.encode(storeFailure, forKey: .failure)
        try store.encode(databaseBytes, forKey: .bytes)
        try store.encode(topics, forKey: .topics)

        try root.encode(cluster, forKey: .cluster)
        try root.encode(leaseFailure, forKey: .leaseFailure)
        try root.encode(replyDelay.seconds, forKey: .replyDelaySeconds)
        var answers = root.nestedContainer(keyedBy: Key.self, forKey: .answerSeconds)
        try answers.encode(answerTimes?.half, forKey: .half)
        try answers.encode(answerTimes?.most, forKey: .most)

        try root.encode(registrations, forKey: .registrations)
        try root.encode(protocols, forKey: .protocols)
        try root.encode(messages, forKey: .messages)
        try root.encode(elsewhere, forKey: .elsewhere)
        try root.encode(notifications, forKey: .notifications)
        try root.encode(losses, forKey: .losses)

        var list = root.nestedUnkeyedContainer(forKey: .alarms)
        for alarm in alarms {
            var item = list.nestedContainer(keyedBy: Key.self)
            try item.encode(alarm.kind.rawValue, forKey: .kind)
            try item.encode(alarm.reason, forKey: .reason)
            try item.encode(alarm.since.seconds, forKey: .since)
            try item.encode(alarm.last.seconds, forKey: .last)
            try item.encode(alarm.count, forKey: .count)
            try item.encode(alarm.isActive(at: time), forKey: .active)
            try item.encode(alarm.kind.section.rawValue, forKey: .article)
        }

        var tally = root.nestedUnkeyedContainer(forKey: .errors)
        for error in errors {
            var item = tally.nestedContainer(keyedBy: Key.self)
            try item.encode(error.message, forKey: .message)
            try item.encode(error.reason, forKey: .reason)
            try item.encode(error.last.seconds, forKey: .last)
            try item.encode(error.count, forKey: .count)
        }

        var charts = root.nestedContainer(keyedBy: Key.self, forKey: .charts)
        try charts.encode(chartTimes.map(\.seconds), forKey: .times)
        try charts.encode(self.charts, forKey: .lines)
    }

    package var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        // All values can be encoded.
        return (try? encoder.encode(self)).map(Array.init) ?? Array("{}".utf8)
    }
}
