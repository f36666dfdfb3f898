package import Core

extension NodeChecks {
    /// The name of the finding on registered devices that the node has no endpoint for.
    package static let devicesCheck = "devices"

    /// - Parameters:
    ///   - protocolName: as in `admin status`.
    ///   - devices: the registered devices by platform, or by push service.
    ///   - serves: whether the node has an endpoint for such devices.
    /// - Returns: nil if the node has an endpoint for all of them.
    package static func unserved(_ protocolName: String, _ devices: [Platform: Int], serves: (Platform) -> Bool) -> Finding? {
        let unserved = devices.filter { $0.value > 0 && !serves($0.key) }
        return Self.unserved(protocolName, unserved.map { ($0.key.name, $0.value) }, platforms: Set(unserved.keys))
    }

    package static func unserved(_ protocolName: String, _ devices: [PushService: Int], serves: (PushService) -> Bool) -> Finding? {
        let unserved = devices.filter { $0.value > 0 && !serves($0.key) }
        return Self.unserved(protocolName, unserved.map { ($0.key.rawValue, $0.value) }, platforms: Set(unserved.keys.map(\.platform)))
    }

    private static func unserved(_ protocolName: String, _ counts: [(name: String, count: Int)], platforms: Set<Platform>) -> Finding? {
        guard !counts.isEmpty else { return nil }
        let list = counts.sorted { $0.name < $1.name }.map { "\($0.count) \($0.name)" }.joined(separator: ", ")
        let needed = [
            platforms.contains(.webPush) ? "--web-push" : nil,
            platforms == [.webPush] ? nil : "a gorush endpoint for their platform and app",
        ]
        return Finding(
            devicesCheck, .warn, "\(protocolName): no endpoint for registered devices (\(list)): they are not notified",
            remedy: "start the node with \(needed.compactMap(\.self).joined(separator: " and "))")
    }
}
