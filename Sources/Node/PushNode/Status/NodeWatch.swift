import Delivery
import Logging
import NodeMetrics
import Core
import Storage
import Synchronization
import Waku

/// Checks the node's parts every second, raises and clears alarms, and records the history for the charts. It never waits for a part, so that it
/// notices parts that hang.
final class NodeWatch: Sendable {
    /// The interval of checks; a point of the charts is recorded with every fifth.
    private static let interval = Duration.seconds(1)
    private static let checksPerPoint = 5

    let alarms: Alarms
    private let relay: any Relay
    /// nil: another part compares it.
    private let clock: ClockMonitor?
    private let store: any Store
    private let counters: Counters
    private let delivery: DeliveryService
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let silence: Mutex<SilenceWatch>
    private let demotedRelays = Mutex<[String]>([])
    private let points = Mutex(StatusHistory())

    init(
        alarms: Alarms, relay: any Relay, clock: ClockMonitor?, store: any Store, counters: Counters, delivery: DeliveryService,
        silenceAlarm: Duration?,
        logger: Logger,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.alarms = alarms
        self.relay = relay
        self.clock = clock
        self.store = store
        self.counters = counters
        self.delivery = delivery
        self.logger = logger
        self.now = now
        silence = Mutex(SilenceWatch(limit: silenceAlarm))
    }

    /// Runs until cancelled.
    func run() async {
        addPoint()
        var checks = 0
        while (try? await Task.sleep(for: Self.interval)) != nil {
            check()
            checks += 1
            if checks.isMultiple(of: Self.checksPerPoint) { addPoint() }
        }
    }

    func check() {
        if case .detached(let reason) = relay.state { alarms.raise(.relayDetached, reason) } else { alarms.clear(.relayDetached) }
        alarms.set(.storeFails, store.failure)
        if let clock, let ahead = relay.clockAhead { clock.compared(ahead: .zero - ahead, of: "the Waku node's") }
        checkRelayRanks()
        let duration = counters.silence
        switch silence.withLock({ $0.update(duration) }) {
        case .becameSilent:
            logger.error("no messages received on the shard", metadata: ["seconds": .stringConvertible(duration.components.seconds)])
        case .recovered: logger.info("messages received again")
        case nil: break
        }
        alarms.set(.silence, silenceObstacle)
    }

    private func checkRelayRanks() {
        let demoted = relay.demotedRelays
        let before = demotedRelays.withLock { known in
            defer { known = demoted }
            return known
        }
        for name in demoted where !before.contains(name) {
            logger.warning("relay demoted: published answers not found in other relays' stores", metadata: ["relay": "\(name)"])
        }
        for name in before where !demoted.contains(name) {
            logger.info("relay restored: published answers confirmed", metadata: ["relay": "\(name)"])
        }
        let reason = "other relays' stores have none of the last answers of \(demoted.joined(separator: ", "))"
        alarms.set(.answersUnconfirmed, demoted.isEmpty ? nil : reason)
    }

    /// The obstacle for readiness; nil unless the silence is too long.
    var silenceObstacle: String? {
        let duration = counters.silence
        guard silence.withLock({ $0.isTooLong(duration) }) else { return nil }
        return "no message for \(duration.inWords): is the Waku node on the right cluster and shard, and does it have peers there?"
    }

    // MARK: Charts

    var history: StatusHistory { points.withLock { $0 } }

    private func addPoint() {
        let point = currentPoint
        points.withLock { $0.add(point) }
    }

    /// The current values.
    var currentPoint: StatusHistory.Point {
        StatusHistory.Point(
            time: now(), counts: counters.snapshot, valid: counters.validCounts, waiting: delivery.waitingCount,
            answerTimes: counters.answerTimes)
    }
}
