import Delivery
import Logging
import NodeAPI
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

    private let base: NodeFoundation
    private let path: MessagePath
    private let silence: Mutex<SilenceWatch>
    private let demotedRelays = Mutex<[String]>([])
    private let points = Mutex(PageHistory())

    init(_ base: NodeFoundation, _ path: MessagePath) {
        self.base = base
        self.path = path
        silence = Mutex(SilenceWatch(limit: base.configuration.silenceAlarm))
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
        if case .detached(let reason) = path.relay.state {
            base.alarms.raise(.relayDetached, reason)
        } else {
            base.alarms.clear(.relayDetached)
        }
        checkStore()
        // With several nodes, the database's clock is the reference.
        if !base.cluster.isShared, let ahead = path.relay.clockAhead { base.clock.compared(ahead: .zero - ahead, of: "the Waku node's") }
        checkRelayRanks()
        base.catchUp.check(seenUntil: path.relay.seenUntil.values.min(), at: base.now())
        let duration = base.counters.silence
        switch silence.withLock({ $0.update(duration) }) {
        case .becameSilent:
            base.logger.error("no messages received on the shard", metadata: ["seconds": .stringConvertible(duration.components.seconds)])
        case .recovered: base.logger.info("messages received again")
        case nil: break
        }
        base.alarms.set(.silence, silenceObstacle)
    }

    private func checkStore() {
        let (failure, wasFailing) = (base.store.failure, base.alarms.isActive(.storeFails))
        base.alarms.set(.storeFails, failure)
        switch (failure, wasFailing) {
        case (let reason?, false): base.logger.error("store unavailable", metadata: ["reason": "\(reason)"])
        case (nil, true): base.logger.info("store available again")
        default: break
        }
    }

    private func checkRelayRanks() {
        let demoted = path.relay.demotedRelays
        let before = demotedRelays.withLock { known in
            defer { known = demoted }
            return known
        }
        for name in demoted where !before.contains(name) {
            base.logger.warning("relay demoted: published answers not found in other relays' stores", metadata: ["relay": "\(name)"])
        }
        for name in before where !demoted.contains(name) {
            base.logger.info("relay restored: published answers confirmed", metadata: ["relay": "\(name)"])
        }
        let reason = "other relays' stores have none of the last answers of \(demoted.joined(separator: ", "))"
        base.alarms.set(.answersUnconfirmed, demoted.isEmpty ? nil : reason)
    }

    /// The obstacle for readiness; nil unless the silence is too long.
    var silenceObstacle: String? {
        let duration = base.counters.silence
        guard silence.withLock({ $0.isTooLong(duration) }) else { return nil }
        return "no message for \(duration.inWords): is the Waku node on the right cluster and shard, and does it have peers there?"
    }

    // MARK: Charts

    var history: PageHistory { points.withLock { $0 } }

    private func addPoint() {
        let point = currentPoint
        points.withLock { $0.add(point) }
    }

    /// The current values.
    var currentPoint: PageHistory.Point {
        PageHistory.Point(
            time: base.now(), counts: base.counters.snapshot, valid: base.counters.validCounts, waiting: path.delivery.waitingCount,
            answerTimes: base.counters.answerTimes)
    }
}
