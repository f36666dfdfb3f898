package import Delivery
package import NodeAPI
package import Core
package import SessionProtocol

/// The checks of Session's push server, as pure functions of its figures.
package enum SessionChecks {
    /// - Parameters:
    ///   - unserved: push services without a gorush endpoint.
    ///   - hasGorush: false for a node that is to serve Web Push alone.
    package static func findings(
        _ figures: SubscriptionMonitor.Figures, unserved: Set<PushService>, hasGorush: Bool, isListening: Bool
    ) -> [Finding] {
        guard isListening else { return [Finding("session", .fail, "starting: subscriptions are being read")] }
        return [servers(figures), swarms(figures), oxend(figures), services(unserved, hasGorush: hasGorush)].compactMap(\.self)
    }

    private static func servers(_ figures: SubscriptionMonitor.Figures) -> Finding {
        let text = "\(figures.connectedServers) of \(figures.knownServers) storage servers connected"
        guard figures.connectedServers == 0 else { return Finding("session", .ok, text) }
        let remedy =
            figures.knownServers == 0
            ? "check --session-nodes or --session-oxend: no storage server is known"
            : "check that this machine may connect to storage servers"
        return Finding("session", figures.subscriptions > 0 ? .fail : .warn, text, remedy: remedy)
    }

    /// nil also if no swarm is known, which is a separate finding.
    private static func swarms(_ figures: SubscriptionMonitor.Figures) -> Finding? {
        guard figures.knownSwarms > 0 else { return nil }
        let text = "\(figures.reachableSwarms) of \(figures.knownSwarms) swarms reachable"
        guard figures.reachableSwarms < figures.knownSwarms else { return Finding("session swarms", .ok, text) }
        let missed = figures.subscriptions - figures.monitoredSubscriptions
        guard missed > 0 else { return Finding("session swarms", .ok, "\(text), including those of all subscriptions") }
        let remedy =
            figures.connectionLimit.map {
                "raise the limit of open files (LimitNOFILE= of systemd, ulimit -n): it allows connections to \($0) of \(figures.knownServers) storage servers"
            } ?? "it tries again within 2 minutes; check that this machine may connect to storage servers"
        return Finding(
            "session swarms", .warn, "\(text): \(missed) \(missed == 1 ? "subscription is" : "subscriptions are") not monitored",
            remedy: remedy)
    }

    /// nil if the list comes from a file.
    private static func oxend(_ figures: SubscriptionMonitor.Figures) -> Finding? {
        figures.isOxendConnected.map { isConnected in
            isConnected
                ? Finding("session oxend", .ok, "connected")
                : Finding(
                    "session oxend", .warn, "not connected: the list of storage servers is not renewed", remedy: "check --session-oxend")
        }
    }

    /// The push services with an endpoint.
    ///
    /// - Parameter apnsTopic: the topic of iOS apps; empty if there is none.
    package static func services(of routing: EndpointRouting, apnsTopic: String) -> Set<PushService> {
        Set(
            PushService.allCases.filter { service in
                switch service.platform {
                case .webPush: routing.postsWebPush
                case .apn, .firebase, .huawei:
                    routing.endpoint(for: service.platform, apnTopic: service.isApple ? apnsTopic : "", service: service) != nil
                }
            })
    }

    private static func services(_ unserved: Set<PushService>, hasGorush: Bool) -> Finding {
        guard hasGorush else { return Finding("session services", .ok, "no gorush: devices of webpush alone are accepted") }
        guard !unserved.isEmpty else { return Finding("session services", .ok, "all services have a gorush endpoint") }
        let names = unserved.map(\.rawValue).sorted().joined(separator: ", ")
        return Finding(
            "session services", .warn, "devices of \(names) are refused",
            remedy: unserved.contains(where: \.isApple)
                ? "set --session-apns-topic, and give an endpoint these services" : "give an endpoint of gorush-endpoints these services")
    }
}
