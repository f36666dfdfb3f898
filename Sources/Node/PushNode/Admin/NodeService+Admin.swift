import Delivery
package import Foundation
package import NodeAPI
import Logging
import NodeMetrics
import Storage
package import Core
import Waku
import WakuCrypto

/// Operations of the admin socket.
extension NodeService {
    private static let selfTestLimit = Duration.seconds(5)

    /// The results of all checks, made now.
    package var findings: [Finding] {
        [
            NodeChecks.relay(configuration.hasRelay ? path.relay.state : nil, detached: path.relay.detachedRelays),
            NodeChecks.silence(observation.watch.silenceObstacle),
            base.catchUp.finding(seenUntil: path.relay.seenUntil.values.min(), at: base.now()), NodeChecks.store(failure: store.failure),
            cluster.isShared ? NodeChecks.lease(failure: cluster.failure ?? cluster.outboxFailure, status: cluster.status) : nil,
            NodeChecks.standbys(cluster.status), NodeChecks.nodes(cluster.conflicts), NodeChecks.claims(cluster.claimGap),
            base.clock.finding(areAllOff: cluster.areAllClocksOff),
        ].compactMap(\.self) + delivery.endpoints.map { NodeChecks.gorush($0.name, obstacle: $0.obstacle, delay: $0.delay) }
            + [
                configuration.webPush.map { endpoint in
                    NodeChecks.webPush(
                        key: endpoint.publicKey, waiting: delivery.webPushFigures?.waitingCount ?? 0,
                        unavailable: delivery.webPushFigures?.unavailableCount ?? 0,
                        keyRefusal: base.alarms.active(.webPushKeyRefused)?.reason, hasGorush: delivery.hasGorush)
                },
                NodeChecks.unroutable(delivery.unroutableCount),
                NodeChecks.freeDisk(DiskSpace(at: configuration.dataPath), hasDatabase: configuration.hasDatabaseInDataFolder),
                NodeChecks.openFiles(OpenFiles.now()),
                NodeChecks.alarms(base.alarms.active), NodeChecks.drain(isOn: base.drain.isOn),
            ].compactMap(\.self) + services.flatMap(\.findings)
    }

    var peers: AdminAPI.Peers { AdminAPI.Peers(addresses: path.relay.ownAddresses, peers: path.relay.peers) }

    var limits: AdminAPI.Limits {
        AdminAPI.Limits(
            [("node", shared)]
                + zip(base.protocols, services).compactMap { proto, service in service.limitReport.map { (proto.name, $0) } })
    }

    /// Refusals by the limits that all protocols share. Their payers have no standing.
    private var shared: LimitReport {
        let bounded: [(limit: String, counters: [Counter])] = [
            ("outbox", [.notificationEvicted]), ("work_queue", [.shedQuery, .shedRequest]), ("answers", [.answerLost]),
            ("connections", [.connectionRefused]),
        ]
        return LimitReport(
            refusals: bounded.compactMap { limit, counters in
                let total = counters.reduce(0) { $0 + self.counters.count($1) }
                guard total > 0 else { return nil }
                let lastMinute = counters.reduce(0) { $0 + maintenance.lastMinute($1) }
                return LimitReport.Refusals(limit: limit, standing: "any", total: total, lastMinute: lastMinute)
            }, payers: base.refusedPeers.greatest(at: .now()), attack: nil)
    }

    /// Returns even if the disk hangs; the expiry of the first notification is unknown then.
    func status() async -> NodeStatus {
        let firstExpiry = await firstExpiryReading.value() ?? nil
        // Reads the figures that findings are about.
        let protocols = await protocolStatus()
        let findings = findings
        return NodeStatus(
            version: configuration.version, processID: ProcessInfo.processInfo.processIdentifier, started: started,
            publicKey: configuration.identity.publicKey.hex, isReady: findings.worst < .fail, isDraining: base.drain.isOn,
            logLevel: configuration.logLevel?.current.rawValue, findings: findings,
            pubsubTopics: configuration.pubsubTopics.map(\.rawValue), queryTopics: topicCount,
            outbox: NodeStatus.Outbox(waiting: delivery.waitingCount, firstExpires: firstExpiry.map(\.date)),
            breaker: delivery.breakerState, hasGorush: delivery.hasGorush,
            counters: Dictionary(uniqueKeysWithValues: base.counters.snapshot.map { ($0.key.name, $0.value) }),
            protocols: protocols, cluster: cluster.status)
    }

    private func protocolStatus() async -> [NodeStatus.ProtocolStatus] {
        var status: [NodeStatus.ProtocolStatus] = []
        for (proto, service) in zip(base.protocols, services) {
            status.append(NodeStatus.ProtocolStatus(name: proto.name, facts: await service.facts()))
        }
        if cluster.isShared { status.append(NodeStatus.ProtocolStatus(name: "cluster", facts: cluster.facts)) }
        return status
    }

    /// Turns refusing registrations and unregistrations on or off. When this returns, every change that was answered success is on disk, and no
    /// other follows while draining.
    func setDrain(_ isOn: Bool) async {
        base.drain.isOn = isOn
        cluster.setDraining(isOn)
        // Registrations that were accepted earlier are committed before this commit.
        await store.settle()
        base.logger.notice(isOn ? "draining: registrations are refused" : "registrations are accepted again")
    }

    /// Returns the previous level; nil if the log level can't be changed.
    func setLogLevel(_ level: Logger.Level) -> Logger.Level? {
        guard let control = configuration.logLevel else { return nil }
        defer { control.current = level }
        return control.current
    }

    /// Loads the topics of registrations that another process stored, so that queries about them are answered. Returns the number of topics.
    func registrationsChanged() async throws(StoreError) -> Int {
        for service in services { try await service.reload() }
        return topicCount
    }

    func testWebPush(_ test: AdminAPI.WebPushTest) async -> AdminAPI.WebPushTested {
        guard let posting = configuration.webPush?.posting else {
            return AdminAPI.WebPushTested(problem: "the daemon runs without --web-push")
        }
        guard let subscription = PushSubscription(json: Array(test.subscription.utf8)) else {
            return AdminAPI.WebPushTested(problem: "the subscription is not valid")
        }
        return AdminAPI.WebPushTested(await posting.post(.test(of: subscription, at: .now())))
    }

    /// Publishes a message to the node itself, on its first pubsub topic, and waits for it.
    func selfTest() async -> AdminAPI.SelfTest {
        do throws(RelayError) {
            let time = try await probe.run(by: path.relay, on: configuration.pubsubTopics[0], limit: Self.selfTestLimit)
            return AdminAPI.SelfTest(milliseconds: time.map { Int($0.nanoseconds / 1_000_000) }, problem: nil)
        } catch {
            return AdminAPI.SelfTest(milliseconds: nil, problem: error.message)
        }
    }
}

extension Timestamp {
    /// Precise to a millisecond.
    package var date: Date { Date(timeIntervalSince1970: TimeInterval(rawValue / 1_000_000) / 1000) }
}
