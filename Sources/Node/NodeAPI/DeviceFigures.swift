package import NodeMetrics
package import Core

/// The number of a protocol's devices by platform, for its gauges and ``RegistrationCounts``.
package struct DeviceFigures: Hashable, Sendable {
    package var registered: [Platform: Int]
    /// The registered devices with a token in doubt.
    package var inDoubt: [Platform: Int]
    package var unregistered: Int
    /// Registered devices of Web Push whose subscriptions name the VAPID key that they were made for, by `VAPIDKey.mark(of:)`.
    package var webPushKeys: [Int64: Int]

    package init(registered: [Platform: Int], inDoubt: [Platform: Int], unregistered: Int, webPushKeys: [Int64: Int] = [:]) {
        self.registered = registered
        self.inDoubt = inDoubt
        self.unregistered = unregistered
        self.webPushKeys = webPushKeys
    }

    package var counts: RegistrationCounts {
        var counts = RegistrationCounts()
        counts.apn = registered[.apn] ?? 0
        counts.firebase = registered[.firebase] ?? 0
        counts.webPush = registered[.webPush] ?? 0
        counts.inDoubt = inDoubt.values.reduce(0, +)
        counts.unregistered = unregistered
        counts.webPushKeys = webPushKeys
        return counts
    }
}

extension MetricRegistry {
    /// Sets the gauges of a protocol's devices.
    ///
    /// - Parameter figures: the numbers; nil when they can't be read now.
    package func set(_ figures: DeviceFigures?, of label: ProtocolLabel) {
        for (platformLabel, platform) in [(PlatformLabel.apn, Platform.apn), (.firebase, .firebase), (.webPush, .webPush)] {
            let inDoubt = figures.map { $0.inDoubt[platform] ?? 0 }
            let certain = figures.map { ($0.registered[platform] ?? 0) - (inDoubt ?? 0) }
            set(.registrations, label, platformLabel, RegistrationStateLabel.registered, to: certain.map(Double.init))
            set(.registrations, label, platformLabel, RegistrationStateLabel.inDoubt, to: inDoubt.map(Double.init))
        }
        set(
            .registrations, label, PlatformLabel.none, RegistrationStateLabel.unregistered, to: figures.map { Double($0.unregistered) })
    }
}
