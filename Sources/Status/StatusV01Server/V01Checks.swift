package import Delivery
package import NodeAPI

/// The checks of version 0.1 that `doctor` makes.
package enum V01Checks {
    /// nil when version 0.1 is off and has no stored data.
    package static func stored(isOn: Bool, records: Int, devices: Int) -> Finding? {
        let stored = "\(records) records with \(devices) devices"
        if isOn { return Finding(StatusPushV01.protocolName, .ok, "on, \(stored)") }
        guard records > 0 else { return nil }
        return Finding(
            StatusPushV01.protocolName, .warn, "off, but \(stored) are stored: nobody can query or notify them",
            remedy: "start the daemon with --status-v0.1, or remove them: waku-push admin records")
    }

    /// - Parameter apnsTopic: the topic of iOS apps, which their records don't name.
    package static func unserved(_ devices: DeviceFigures, routing: EndpointRouting, apnsTopic: String) -> Finding? {
        NodeChecks.unserved("Status 0.1", devices.registered) { routing.endpoint(for: $0, apnTopic: apnsTopic) != nil }
    }
}
