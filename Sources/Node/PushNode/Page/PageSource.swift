import NodeAPI
import Delivery
import NodeMetrics
import Storage
import Core
import Waku

/// Gathers the figures of the status page when it is requested.
struct PageSource: Sendable {
    private static let lossLimit = 12

    let base: NodeFoundation
    let path: MessagePath
    let watch: NodeWatch
    private let started = ContinuousClock.now

    /// - Parameter findings: of all checks. The failed ones are why the node is not ready.
    func status(_ findings: [Finding]) async -> PageFigures {
        var status = PageFigures()
        status.time = base.now()
        status.uptime = started.duration(to: .now)
        status.obstacles = findings.filter { $0.verdict == .fail }.map { PageFigures.Obstacle($0) }
        status.hasRelay = base.configuration.hasRelay
        if base.configuration.hasRelay, case .detached(let reason) = path.relay.state { status.relayObstacle = reason }
        status.silence = base.counters.silence
        status.isSilent = watch.silenceObstacle != nil
        let endpoints = path.delivery.endpoints
        status.hasGorush = path.delivery.hasGorush
        status.breaker = BreakerLabel(path.delivery.breaker.state)
        status.gorushDelay = endpoints.lazy.compactMap { endpoint in endpoint.delay.map { "\(endpoint.name) \($0)" } }.first
        if status.breaker != .closed {
            status.gorushFailure = endpoints.first { !$0.breaker.isClosed }?.failure
        } else if status.gorushDelay == nil {
            status.gorushFailure = endpoints.lazy.compactMap { endpoint in endpoint.obstacle.map { "\(endpoint.name) \($0)" } }.first
        }
        if endpoints.count > 1 {
            status.endpoints = endpoints.map {
                PageFigures.Endpoint(name: $0.name, breaker: BreakerLabel($0.breaker.state).rawValue, waiting: $0.waitingCount)
            }
        }
        status.waiting = path.delivery.waitingCount
        status.oldestWaiting = path.delivery.oldestAge
        status.storeFailure = base.store.failure
        status.databaseBytes = base.store.byteCount
        status.topics = base.topicCount
        for (proto, service) in zip(base.protocols, path.services) {
            if let devices = await service.registrations() {
                status.add(
                    PageFigures.Registrations(
                        apn: devices.registered[.apn] ?? 0, firebase: devices.registered[.firebase] ?? 0,
                        huawei: devices.registered[.huawei] ?? 0, webPush: devices.registered[.webPush] ?? 0,
                        inDoubt: devices.inDoubt.values.reduce(0, +), unregistered: devices.unregistered))
            }
            status.protocols.append(
                PageFigures.ProtocolLines(name: proto.name, lines: await service.facts().map { ($0.name, $0.value) }))
        }
        if let figures = path.delivery.webPushFigures {
            status.protocols.append(PageFigures.ProtocolLines(name: "web push", lines: figures.lines(hasGorush: path.delivery.hasGorush)))
        }
        if base.cluster.isShared {
            status.protocols.append(PageFigures.ProtocolLines(name: "cluster", lines: base.cluster.facts.map { ($0.name, $0.value) }))
        }
        status.cluster = base.cluster.status
        status.leaseFailure = base.cluster.isShared ? base.cluster.failure : nil
        status.replyDelay = base.configuration.replyDelay
        status.alarms = base.alarms.all
        status.errors = base.configuration.recentErrors.all
        status.documentation = base.configuration.documentation
        addFlow(to: &status)
        return status
    }

    private func addFlow(to status: inout PageFigures) {
        var history = watch.history
        let end = watch.currentPoint
        history.extend(to: end)
        let start = history.points.first ?? end
        func step(_ name: String, _ figure: (PageHistory.Point) -> Int) -> PageFigures.Step {
            PageFigures.Step(name: name, lately: max(0, figure(end) - figure(start)), total: figure(end))
        }
        status.span = end.time.since(start.time)
        status.gaps = end.count(.gapFound)
        status.recovered = end.count(.messageRecovered)
        status.messages = [
            step("Received, from everyone") { $0.count(.received) },
            step("On topics of this identity") { $0.count(.ours) - $0.count(.duplicate) },
            step("Requests to this node") { $0.valid.reduce(0, +) }, step("Handled") { $0.count(handled) },
            step("Answered") { $0.count(.answerPublished) },
        ]
        if base.cluster.isShared {
            status.elsewhere = step("Handled by other nodes") { $0.count([.clusterLeft, .clusterElsewhere]) }
        }
        status.notifications = [
            step("Notifications queued") { $0.count(.notificationQueued) }, step("Accepted by gorush") { $0.count(.notificationAccepted) },
        ]
        status.posts = [
            step("Accepted by gorush") { $0.count(.notificationAccepted) }, step("To be retried") { $0.count(.notificationRetried) },
            step("Failed posts") { $0.count(.postFailed) },
        ]
        status.losses = losses.map { counter in step(counter.name) { $0.count(counter) } }
            .filter { $0.total > 0 }.sorted { ($0.lately, $0.total) > ($1.lately, $1.total) }
            .prefix(Self.lossLimit).map(\.self)
        status.answerTimes = base.counters.percentiles(from: start.answerTimes, to: end.answerTimes)

        status.chartTimes = history.points.dropFirst().map(\.time)
        func line(_ name: String, _ figure: (PageHistory.Point) -> Int) -> PageFigures.Line {
            PageFigures.Line(name: name, values: history.rates(figure))
        }
        status.charts = [
            PageFigures.Chart(title: "On the shard", unit: "messages per second", lines: [line("all", { $0.count(.received) })]),
            PageFigures.Chart(
                title: "Requests to this node", unit: "messages per second",
                lines: KindLabel.allCases.map { kind in
                    line(kind == .query ? "queries" : kind.rawValue + "s") { $0.valid[kind.place] }
                }),
            PageFigures.Chart(
                title: "Notifications", unit: "per second",
                lines: [
                    line("queued") { $0.count(.notificationQueued) }, line("accepted") { $0.count(.notificationAccepted) },
                    line("lost") { $0.count(Counter.givenUp) },
                ]),
            PageFigures.Chart(
                title: "Waiting for gorush", unit: "notifications",
                lines: [PageFigures.Line(name: "in the outbox", values: history.points.dropFirst().map { Double($0.waiting) })]),
        ]
    }
}

extension WebPushFigures {
    /// Names no push service.
    fileprivate func lines(hasGorush: Bool) -> [(name: String, value: String)] {
        let services = "\(postingCount) posted to, \(otherCount) waiting, \(unavailableCount) unavailable"
        return [("gorush", hasGorush ? "used as well" : "none"), ("waiting", "\(waitingCount)"), ("push services", services)]
    }
}

extension PageSource {
    private var handled: [Counter] { base.counters.declared.filter { $0.series?.metric == .handled } }

    /// Counters of lost messages and notifications.
    private var losses: [Counter] {
        base.counters.declared.filter { $0.series?.metric == .dropped && $0 != .segment } + Counter.givenUp
            + [.notificationUnregistered] + base.protocols.flatMap(\.losses) + [.answerLost, .tokenFailureLost, .feedbackShed]
    }
}

extension Counter {
    fileprivate static let givenUp: [Counter] = [
        .notificationRefused, .notificationExpired, .notificationEvicted, .notificationUnreadable, .notificationUnroutable,
        .notificationUncounted, .notificationMessageEnded, .notificationNotWebPushed, .tokenFailedOtherwise, .messageFailed,
        .tokenOperatorsMistake,
    ]
}
