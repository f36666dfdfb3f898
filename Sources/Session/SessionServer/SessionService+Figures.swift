import Delivery
import NodeAPI
import NodeMetrics
import Core
import SessionProtocol
import Synchronization
import WakuCrypto

/// Information for operators: readiness, facts, gauges.
extension SessionService {
    var findings: [Finding] {
        SessionChecks.findings(
            monitor.figures, unserved: Set(PushService.ofGorush).subtracting(services), hasGorush: node.delivery.hasGorush,
            isListening: httpPort != nil)
            + [
                limits.exhaustedFinding(), proxyWatch.withLock(\.finding), figures.latest.flatMap(webPushKeyUse)?.finding("Session"),
                figures.latest.flatMap { NodeChecks.unserved("Session", $0.services, serves: services.contains) },
            ].compactMap(\.self)
    }

    func countDevices() async { await figures.readAhead() }

    /// nil for a node without Web Push.
    private func webPushKeyUse(_ figures: SubscriptionFigures) -> WebPushKeyUse? {
        let keys = node.delivery.routing.webPushKeys
        return keys.isEmpty ? nil : WebPushKeyUse(total: figures.services[.webPush] ?? 0, counts: figures.webPushKeys, keys: keys)
    }

    func updateGauges(_ counters: Counters) async {
        let registry = counters.registry
        let stored = await figures.value()
        for service in PushService.allCases {
            registry.set(.sessionSubscriptions, service, to: stored.map { Double($0.services[service] ?? 0) })
        }
        if node.delivery.routing.postsWebPush { registry.set(stored.flatMap(webPushKeyUse), of: .session) }
        registry.set(.sessionAccounts, to: stored.map { Double($0.accounts) })
        let monitored = monitor.figures
        registry.set(.sessionServers, SessionReachLabel.known, to: Double(monitored.knownServers))
        registry.set(.sessionServers, SessionReachLabel.connected, to: Double(monitored.connectedServers))
        registry.set(.sessionSwarms, SessionReachLabel.known, to: Double(monitored.knownSwarms))
        registry.set(.sessionSwarms, SessionReachLabel.connected, to: Double(monitored.reachableSwarms))
        registry.set(.sessionMonitored, to: Double(monitored.monitoredSubscriptions))
        registry.set(.sessionMapAge, to: monitored.mapReceivedAt.map { (Instant.now - $0) / .seconds(1) })
    }

    func registrations() async -> DeviceFigures? {
        await figures.value().map { stored in
            var devices = DeviceFigures()
            for (service, count) in stored.services { devices.registered[service.platform, default: 0] += count }
            for (service, count) in stored.inDoubt { devices.inDoubt[service.platform, default: 0] += count }
            return devices
        }
    }

    func facts() async -> [ProtocolFact] {
        let stored = await figures.value()
        let monitored = monitor.figures
        let counters = node.counters
        let dropped = SessionDropReason.allCases.compactMap { reason -> String? in
            let count = counters.count(.sessionDropped(reason))
            return count > 0 ? "\(count) \(reason.inWords)" : nil
        }
        func devices(_ stored: SubscriptionFigures) -> String {
            let parts = PushService.allCases.compactMap { service in stored.services[service].map { "\($0) \(service.rawValue)" } }
            return parts.isEmpty ? "none" : parts.joined(separator: ", ")
        }
        return [
            ProtocolFact("HTTP", configuration.httpAddress.description),
            ProtocolFact(SessionChecks.onionKeyFact, configuration.onionKey.publicKeyHex),
            ProtocolFact("APNs topic", configuration.apnsTopic.isEmpty ? "none" : configuration.apnsTopic),
            ProtocolFact("accounts", stored.map { String($0.accounts) } ?? "not known"),
            ProtocolFact("devices", stored.map(devices) ?? "not known"),
            ProtocolFact("storage servers connected", "\(monitored.connectedServers) of \(monitored.knownServers)"),
            ProtocolFact("swarms reachable", "\(monitored.reachableSwarms) of \(monitored.knownSwarms)"),
            ProtocolFact("subscriptions monitored", "\(monitored.monitoredSubscriptions) of \(monitored.subscriptions)"),
            ProtocolFact("messages reported", String(counters.count(.sessionMessage))),
            ProtocolFact("notifications", String(counters.count(.sessionNotification))),
            ProtocolFact("messages dropped", dropped.isEmpty ? "none" : dropped.joined(separator: ", ")),
        ] + [sharedMonitoring?.share?.fact, stored.flatMap(webPushKeyUse)?.fact].compactMap(\.self)
    }
}

extension KeyShare {
    /// A fact for `admin status` and the status page.
    var fact: ProtocolFact {
        ProtocolFact("nodes that share the accounts", nodeCount == 0 ? "none: each node serves all accounts" : String(nodeCount))
    }
}

extension OnionKey {
    /// The public key in 64 lower-case hexadecimal digits.
    package var publicKeyHex: String { hexString(publicKey) }
}
