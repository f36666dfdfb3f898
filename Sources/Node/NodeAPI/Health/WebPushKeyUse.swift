import Core
package import NodeMetrics
package import WakuCrypto

/// The number of a protocol's Web Push subscriptions by the VAPID key that they were made for.
package struct WebPushKeyUse: Hashable, Sendable {
    package let current: Int
    /// Made for keys that the node has besides the current one.
    package let former: Int
    /// Made for keys that the node does not have.
    package let foreign: Int
    /// Subscriptions that name no key.
    package let unnamed: Int
    private let hasFormerKeys: Bool

    /// - Parameters:
    ///   - counts: the number of subscriptions that name a key, by `VAPIDKey.mark(of:)`.
    ///   - keys: the node's keys, the current one first.
    package init(total: Int, counts: [Int64: Int], keys: [P256PublicKey]) {
        let own = keys.map { counts[VAPIDKey.mark(of: $0)] ?? 0 }
        let named = counts.values.reduce(0, +)
        current = own.first ?? 0
        former = own.dropFirst().reduce(0, +)
        foreign = named - own.reduce(0, +)
        unnamed = max(0, total - named)
        hasFormerKeys = keys.count > 1
    }

    /// A fact for `admin status` and the status page.
    package var fact: ProtocolFact {
        var parts = ["\(current) for the current VAPID key", "\(former) for former keys", "\(unnamed) name no key"]
        if foreign > 0 { parts.append("\(foreign) for keys that this node does not have") }
        return ProtocolFact("Web Push subscriptions", parts.joined(separator: ", "))
    }

    /// The progress of a change of the VAPID key; nil for a node with one key and no subscription for another.
    ///
    /// - Parameter protocolName: as in `admin status`.
    package func finding(_ protocolName: String) -> Finding? {
        let check = "web push keys"
        if foreign > 0 {
            return Finding(
                check, .warn, "\(protocolName): \(foreign) Web Push subscriptions are for a VAPID key that this node does not have",
                remedy: "give the key by --web-push-former-key until these clients have subscribed again")
        }
        guard hasFormerKeys else { return nil }
        let rest = unnamed > 0 ? "; \(unnamed) do not name theirs" : ""
        guard former == 0 else {
            return Finding(check, .ok, "\(protocolName): \(former) Web Push subscriptions are for a former VAPID key\(rest)")
        }
        return Finding(check, .ok, "\(protocolName): no Web Push subscription names a former VAPID key\(rest)")
    }
}

extension MetricRegistry {
    /// Sets the gauges of a protocol's Web Push subscriptions.
    ///
    /// - Parameter use: the numbers; nil when they can't be read now.
    package func set(_ use: WebPushKeyUse?, of label: ProtocolLabel) {
        set(.webPushSubscriptions, label, WebPushKeyLabel.current, to: use.map { Double($0.current) })
        set(.webPushSubscriptions, label, WebPushKeyLabel.former, to: use.map { Double($0.former) })
        set(.webPushSubscriptions, label, WebPushKeyLabel.foreign, to: use.map { Double($0.foreign) })
        set(.webPushSubscriptions, label, WebPushKeyLabel.unnamed, to: use.map { Double($0.unnamed) })
    }
}
