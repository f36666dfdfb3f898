import Core
import TestSupport
import Testing
import Waku

@testable import NwakuRelay

/// Polling, gaps and store queries with random failures: bursts that flush the cache, restarts of the node, of its store and of the
/// daemon, polls and pages that fail or get lost on the way back, silent periods, and a clock that steps back and forth.
///
/// Invariant of each step: every stored message before the reported `seenUntil` was received. After recovery, no message is missing.
struct CatchUpSimulationTests {
    private static let stepCount = 5_000

    @Test(arguments: 1...20)
    func daemonRestarts(seed: UInt64) {
        var simulation = Simulation(seed: seed, faults: .restarts)
        check(&simulation, seed)
    }

    @Test(arguments: 101...120)
    func clockSteps(seed: UInt64) {
        var simulation = Simulation(seed: seed, faults: .clock)
        check(&simulation, seed)
    }

    private func check(_ simulation: inout Simulation, _ seed: UInt64) {
        for step in 0..<Self.stepCount {
            simulation.step()
            if let broken = simulation.brokenPromise {
                Issue.record("seed \(seed), step \(step): message \(broken) is missing from before what was told as seen")
                return
            }
        }
        simulation.heal()
        #expect(simulation.missing.isEmpty, "seed \(seed): \(simulation.missing.count) of \(simulation.sentCount) messages never came")
        // Otherwise the run would prove nothing.
        #expect(simulation.gapCount > 10 && simulation.recoveredCount > 10 && simulation.sentCount > 1000, "seed \(seed)")
    }
}

private struct Simulation {
    enum Faults {
        /// Restarts of the daemon, which continues from the last saved times.
        case restarts
        /// A wrong clock for some minutes. It is right when the daemon starts.
        case clock
    }

    private static let topics = [PubsubTopic.statusDefault, PubsubTopic(rawValue: "/waku/2/rs/16/64")]
    private static let epoch = Timestamp(rawValue: 1_800_000_000_000_000_000)

    private let faults: Faults
    private let topics: [PubsubTopic]
    private var random: SeededGenerator
    private var node: ModelNode
    private var progress: NwakuProgress
    private var time = Simulation.epoch
    private var startedAt = Simulation.epoch
    private var clockError = Duration.zero
    private var clockHealsAt = Simulation.epoch
    private var nodeIsDownUntil = Simulation.epoch
    private var storeIsDownUntil = Simulation.epoch
    private var saved: [PubsubTopic: Timestamp] = [:]
    private var isHealthy = false

    private(set) var missing: [Int: (topic: PubsubTopic, arrivedAt: Timestamp)] = [:]
    private(set) var sentCount = 0
    private(set) var gapCount = 0
    private(set) var recoveredCount = 0

    init(seed: UInt64, faults: Faults) {
        self.faults = faults
        random = SeededGenerator(seed: seed)
        topics = Array(Self.topics.prefix(Int.random(in: 1...2, using: &random)))
        node = ModelNode(cacheCapacity: Int.random(in: 5...20, using: &random))
        progress = Self.progress(topics, capacity: node.cacheCapacity, lastSeen: [:], at: Moment(instant: .zero, wallClock: Self.epoch))
        // Messages from before the first poll are not guaranteed.
        isHealthy = true
        for _ in 0..<2 { attach() }
        isHealthy = false
        saved = progress.seenUntil(at: now)
    }

    private static func progress(
        _ topics: [PubsubTopic], capacity: Int, lastSeen: [PubsubTopic: Timestamp], at now: Moment
    ) -> NwakuProgress {
        NwakuProgress(
            attachment: NwakuAttachment.Configuration(pubsubTopics: topics, cacheCapacity: capacity),
            catchUp: StoreCatchUp.Configuration(contentTopics: [ModelNode.contentTopic], rememberedHashCount: 200), lastSeen: lastSeen,
            at: now)
    }

    private var now: Moment { Moment(instant: Instant(sinceEpoch: time.since(startedAt)), wallClock: time + clockError) }

    private mutating func happens(_ oneIn: Int) -> Bool { !isHealthy && Int.random(in: 0..<oneIn, using: &random) == 0 }
    private mutating func upTo(_ longest: Duration) -> Duration {
        .milliseconds(Int64.random(in: 1...longest.nanoseconds / 1_000_000, using: &random))
    }

    /// A message that is missing although the reported `seenUntil` is later; nil when there is none. Not checked while the clock can be
    /// wrong.
    var brokenPromise: Int? {
        guard faults == .restarts, !missing.isEmpty else { return nil }
        let seenUntil = progress.seenUntil(at: now)
        return missing.first { $0.value.arrivedAt < seenUntil[$0.value.topic] ?? Self.epoch }?.key
    }

    mutating func step() {
        time = time + upTo(happens(300) ? .seconds(90) : .milliseconds(300))
        arrivals(limit: happens(50) ? 3 * node.cacheCapacity : 2)
        breakThings()
        attach()
        for index in progress.catchUps.indices { catchUp(on: index) }
        if happens(20) { saved = progress.seenUntil(at: now) }
    }

    /// Ends all failures, and lets time pass.
    mutating func heal() {
        isHealthy = true
        (nodeIsDownUntil, storeIsDownUntil, clockError) = (time, time, .zero)
        for _ in 0..<1000 { step() }
        // Messages of the last steps were polled, but messages lost from a full cache may still have to be fetched from the store.
        for _ in 0..<100 {
            time = time + .milliseconds(500)
            attach()
            for index in progress.catchUps.indices { catchUp(on: index) }
        }
    }

    // MARK: The network

    private mutating func arrivals(limit: Int) {
        for _ in 0..<Int.random(in: 0...limit, using: &random) {
            let topic = random.pick(topics)
            if Int.random(in: 0..<3, using: &random) > 0 {
                // Senders may choose any timestamp.
                let sentAt = Bool.random(using: &random) ? time + upTo(.seconds(100_000)) : time - upTo(.seconds(100_000))
                if time >= nodeIsDownUntil { node.arriveForeign(on: topic, sentAt: sentAt) }
                continue
            }
            sentCount += 1
            let sentAt = time + (Bool.random(using: &random) ? upTo(.seconds(20)) : .zero - upTo(.seconds(20)))
            let message = WakuMessage(payload: payload(sentCount), contentTopic: ModelNode.contentTopic, timestamp: sentAt)
            missing[sentCount] = (topic, time)
            node.arrive(ReceivedMessage(message: message, pubsubTopic: topic), isUp: time >= nodeIsDownUntil, at: time)
        }
    }

    private mutating func breakThings() {
        if happens(400) {
            node.restart()
            nodeIsDownUntil = time + upTo(.seconds(70))
        }
        // Rarely long: a long gap hides the effects of other failures.
        if happens(400) { storeIsDownUntil = time + upTo(happens(8) ? .seconds(600) : .seconds(10)) }
        if happens(300) { node.restartStore() }
        switch faults {
        case .restarts:
            guard happens(500) else { return }
            time = time + upTo(.seconds(200))
            startedAt = time
            progress = Self.progress(topics, capacity: node.cacheCapacity, lastSeen: saved, at: now)
        case .clock:
            if clockError != .zero, time >= clockHealsAt { clockError = .zero }
            guard happens(500) else { return }
            if clockError == .zero { clockHealsAt = time + upTo(.seconds(900)) }
            clockError = Bool.random(using: &random) ? upTo(.seconds(7200)) : .zero - upTo(.seconds(7200))
        }
    }

    // MARK: The daemon

    private mutating func deliver(_ messages: [ReceivedMessage]) -> Int {
        messages.count { missing.removeValue(forKey: number($0)) != nil }
    }

    private mutating func attach() {
        let isDown = time < nodeIsDownUntil
        switch progress.attachment.next(at: now) {
        case .wait: break
        case .subscribe:
            if isDown || happens(20) {
                progress.attachment.failed("", at: now, jitter: 0.5)
            } else {
                node.subscribe(to: topics)
                progress.attachment.subscribed(at: now)
            }
        case .poll:
            let sent = now
            var count = 0
            for (index, topic) in topics.enumerated() {
                // Topics are polled one after the other, and messages arrive in between.
                if index > 0, happens(20) { arrivals(limit: 2 * node.cacheCapacity) }
                guard !isDown, !happens(50) else { return progress.attachment.failed("", at: now, jitter: 0.5) }
                guard let poll = node.poll(topic) else { return progress.attachment.subscriptionLost(at: now, jitter: 0.5) }
                // Removed from the node's cache, and lost on the way.
                guard !happens(100) else { return progress.attachment.failed("", at: now, jitter: 0.5) }
                count += poll.count
                progress.noteReceived(poll.ours, on: index)
                _ = deliver(poll.ours)
                time = time + .milliseconds(5)
            }
            gapCount += progress.polled(messageCount: count, sent: sent, at: now).gapCount
        }
    }

    private mutating func catchUp(on index: Int) {
        guard case .query(let query) = progress.catchUps[index].next(at: now) else { return }
        guard time >= storeIsDownUntil, !happens(10), let page = node.query(query, at: time) else {
            _ = progress.catchUps[index].failed(at: now, jitter: 0.5)
            return
        }
        recoveredCount += deliver(progress.catchUps[index].fresh(page.messages))
        _ = progress.catchUps[index].answered(page)
    }
}
