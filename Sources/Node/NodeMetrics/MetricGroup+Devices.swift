extension MetricGroup {
    /// Registered devices, of all protocols.
    package static let devices = MetricGroup(metrics: [.registrations], counters: [.registrationExpired, .registrationDisplaced])
}

extension Metric {
    package static let registrations = Metric(
        "waku_push_registrations", ProtocolLabel.self, PlatformLabel.self, RegistrationStateLabel.self,
        help:
            "Devices of the whole database, the same at each node, by protocol, platform and state. Unregistered ones have no platform; where an account registers all its devices at once, an account counts as one."
    )
}

extension Counter {
    package static let registrationExpired = Counter("registration ended: not renewed", .registrationsRemoved, RemovalLabel.expired)
    package static let registrationDisplaced = Counter(
        "registration ended: no one had asked for it, and a limit was reached", .registrationsRemoved, RemovalLabel.displaced)
}

package enum PlatformLabel: String, MetricLabel {
    package static let labelName = "platform"
    case apn, firebase
    case webPush = "webpush"
    /// The platform of unregistered devices.
    case none
}

package enum RegistrationStateLabel: String, MetricLabel {
    package static let labelName = "state"
    case registered
    case inDoubt = "in_doubt"
    case unregistered
}
