package import NodeMetrics
package import Core
package import Storage

/// The number of a protocol's devices by platform, for its gauges, admin and the status page.
public struct DeviceFigures: Hashable, Sendable {
    package var registered: [Platform: Int] = [:]
    /// The registered devices with a token in doubt.
    package var inDoubt: [Platform: Int] = [:]
    package var unregistered = 0
    /// Registered devices of Web Push whose subscriptions name the VAPID key that they were made for, by `VAPIDKey.mark(of:)`.
    package var webPushKeys: [Int64: Int] = [:]

    package init() {}

    /// - Parameters:
    ///   - rows: a platform and a number each; those without a platform are unregistered.
    ///   - inDoubt: the same of the devices with a token in doubt.
    /// - Throws: `UnexpectedValue`
    package init(byPlatform rows: [Row], inDoubt: [Row] = []) throws {
        for row in rows {
            if let platform = try Self.platform(row) {
                registered[platform] = Int(try row.integer(1))
            } else {
                unregistered += Int(try row.integer(1))
            }
        }
        for row in inDoubt { if let platform = try Self.platform(row) { self.inDoubt[platform] = Int(try row.integer(1)) } }
    }

    private static func platform(_ row: Row) throws -> Platform? {
        try row.optionalInteger(0).flatMap { Platform(rawValue: Int32(truncatingIfNeeded: $0)) }
    }

    /// The number of all registered devices.
    package var total: Int { registered.values.reduce(0, +) }
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
