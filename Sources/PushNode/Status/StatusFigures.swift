import Foundation
import NodeMetrics
import Waku

/// A node at a glance: what the page shows, and `/status.json` tells.
struct StatusFigures: Sendable {
    struct Step: Sendable, Encodable {
        let name: String
        /// In the time that the charts cover, and since the start.
        let lately: Int
        let total: Int
    }

    struct Registrations: Sendable, Encodable {
        let apn: Int
        let firebase: Int
        let inDoubt: Int
        let unregistered: Int
    }

    struct Line: Sendable, Encodable {
        let name: String
        /// One for each of ``Charts/times``.
        let values: [Double]
    }

    struct Chart: Sendable, Encodable {
        let title: String
        let unit: String
        let lines: [Line]
    }

    struct Endpoint: Encodable {
        let name: String
        let breaker: String
        let waiting: Int
    }

    var time = Timestamp(rawValue: 0)
    /// Since the start of the node.
    var uptime = Duration.zero
    var obstacles: [String] = []

    /// nil while it is attached.
    var relayObstacle: String?
    var silence = Duration.zero
    var isSilent = false
    var gaps = 0
    var recovered = 0

    var breaker = BreakerLabel.closed
    /// Why the last post failed, while the breaker is not closed.
    var gorushFailure: String?
    /// That one is slow.
    var gorushDelay: String?
    /// Where there are several.
    var endpoints: [Endpoint] = []
    var waiting = 0
    var oldestWaiting: Duration?
    var posts: [Step] = []

    var storeFailure: String?
    var databaseBytes = 0
    /// nil while they can't be read.
    var registrations: Registrations?
    var topics = 0

    /// The way of a message, and of a notification.
    var messages: [Step] = []
    var notifications: [Step] = []
    /// What never arrived, the most frequent first.
    var losses: [Step] = []
    /// Within which a half, and 99 of 100, were answered lately; nil when none was. Infinite beyond the last bucket.
    var answerTimes: (half: Double, most: Double)?
    var alarms: [Alarm] = []
    /// How long the charts cover.
    var span = Duration.zero
    var chartTimes: [Timestamp] = []
    var charts: [Chart] = []

    var isReady: Bool { obstacles.isEmpty }
}

// MARK: - JSON

extension StatusFigures: Encodable {
    private enum Key: String, CodingKey {
        case time, uptimeSeconds, ready, obstacles, relay, gorush, store, registrations, messages, notifications, losses, alarms, charts
        case attached, lastMessageSeconds, silent, gaps, recovered, breaker, failure, delay, endpoints, waiting, oldestSeconds, posts,
            bytes,
            topics
        case times, lines, kind, reason, since, last, count, active
    }

    func encode(to encoder: any Encoder) throws {
        var root = encoder.container(keyedBy: Key.self)
        try root.encode(time.seconds, forKey: .time)
        try root.encode(uptime.seconds, forKey: .uptimeSeconds)
        try root.encode(isReady, forKey: .ready)
        try root.encode(obstacles, forKey: .obstacles)

        var relay = root.nestedContainer(keyedBy: Key.self, forKey: .relay)
        try relay.encode(relayObstacle == nil, forKey: .attached)
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

        try root.encode(registrations, forKey: .registrations)
        try root.encode(messages, forKey: .messages)
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
        }

        var charts = root.nestedContainer(keyedBy: Key.self, forKey: .charts)
        try charts.encode(chartTimes.map(\.seconds), forKey: .times)
        try charts.encode(self.charts, forKey: .lines)
    }

    var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        // There is nothing in it that can't be encoded.
        return (try? encoder.encode(self)).map(Array.init) ?? Array("{}".utf8)
    }
}
