/// The devices with most waiting deliveries. Each change takes constant time.
///
/// Devices with a single delivery are not kept: most devices have one, and none of them has more than the others.
struct LineLengths: Sendable {
    private var devices: [Int: Set<DeviceID>] = [:]
    private var longest = 1

    /// A device with most deliveries; nil if no device has two.
    var next: DeviceID? { devices[longest]?.first }

    mutating func changed(_ device: DeviceID, from former: Int, to count: Int) {
        if former > 1 {
            devices[former]?.remove(device)
            if devices[former]?.isEmpty == true { devices[former] = nil }
        }
        if count > 1 { devices[count, default: []].insert(device) }
        longest = max(longest, count)
        while longest > 1, devices[longest] == nil { longest -= 1 }
    }
}
