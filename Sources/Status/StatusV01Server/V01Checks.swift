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
}
