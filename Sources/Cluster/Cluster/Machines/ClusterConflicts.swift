/// Conflicts among live nodes: duplicate names and keys, and different values of options that must be equal.
package enum ClusterConflicts {
    /// A setting that must differ: the peer id of the node, from the key in its data folder. Relays disconnect one of two nodes with the same key.
    package static let nodeKey = "--node-key"
    /// A setting that every node must know: a release without it posts a Web Push device to gorush, as an iOS one.
    static let webPush = "--web-push"

    /// - Parameters:
    ///   - view: of the node's last committed heartbeat.
    ///   - own: the node that compares.
    /// - Returns: a sentence for each conflict, without a full stop, in a fixed order; empty when there are none.
    package static func find(in view: ClusterView, of own: NodeID) -> [String] {
        let live = view.leases.filter { $0.state != .ended }
        guard let lease = live.first(where: { $0.node == own }) else { return [] }
        let others = live.filter { $0.node != own }.sorted { ($0.name, $0.node) < ($1.name, $1.node) }
        var conflicts: [String] = []
        if others.contains(where: { $0.name == lease.name }) {
            conflicts.append("another node is named \(lease.name) too: give each node a --cluster name of its own")
        }
        guard let settings = lease.settings else { return conflicts }
        for (option, value) in settings.sorted(by: { $0.key < $1.key }) {
            // A release that does not know an option omits it.
            let values = Dictionary(grouping: others.filter { $0.settings?[option] != nil }) { $0.settings?[option] ?? "" }
            func names(_ value: String) -> String { (values[value] ?? []).map(\.name).joined(separator: ", ") }
            if option == nodeKey {
                guard values[value] != nil else { continue }
                conflicts.append("\(option) is that of \(names(value)) too, so that relays disconnect one of them: delete the file of one")
            } else {
                for theirs in values.keys.sorted() where theirs != value {
                    conflicts.append("\(option) is \(value) here and \(theirs) at \(names(theirs))")
                }
            }
        }
        let unaware = others.filter { $0.settings?[webPush] == nil }
        if settings[webPush].map({ $0 != "off" }) == true, !unaware.isEmpty {
            let names = unaware.map(\.name).joined(separator: ", ")
            conflicts.append("\(webPush) is unknown to the release of \(names): Web Push registrations are refused until it is upgraded")
        }
        return conflicts
    }

    /// The names of own settings that another live node does not announce, since its release does not know them.
    package static func unknownSettings(in view: ClusterView, of own: NodeID) -> Set<String> {
        let live = view.leases.filter { $0.state != .ended }
        let settings = live.first { $0.node == own }?.settings ?? [:]
        return Set(settings.keys.filter { option in live.contains { $0.settings?[option] == nil } })
    }

    /// The names of the settings of which another live node has another value.
    package static func settings(in view: ClusterView, of own: NodeID) -> Set<String> {
        let live = view.leases.filter { $0.state != .ended }
        let settings = live.first { $0.node == own }?.settings ?? [:]
        let shared = settings.filter { $0.key != nodeKey }
        return Set(shared.filter { option, value in live.contains { $0.settings?[option].map { $0 != value } == true } }.keys)
    }
}

extension LeaseRow {
    /// Longer ones are not compared.
    private static let settingsLimit = 16 << 10

    /// `name=value` lines in the order of the names; nil without settings.
    package var settingsText: String? {
        settings.map { $0.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "\n") }
    }

    package static func settings(parsing text: String) -> [String: String]? {
        guard text.utf8.count <= settingsLimit else { return nil }
        let pairs = text.split(separator: "\n").compactMap { line -> (String, String)? in
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
        }
        return Dictionary(pairs) { first, _ in first }
    }
}
