import Core
package import NodeMetrics
package import Storage
package import Waku

/// The checks of a running node, as pure functions of facts. Readiness, `admin status` and `doctor` share them.
package enum NodeChecks {
    /// - Parameter detached: the relays, peers and topics of an attached relay that receive no messages.
    package static func relay(_ state: RelayState?, detached: [String] = []) -> Finding {
        switch state {
        case nil: Finding("relay", .ok, "none: protocols over HTTP need none")
        case .attached where !detached.isEmpty:
            Finding(
                "relay", .warn, "attached, but nothing is received from \(detached.joined(separator: ", "))",
                remedy: "start what is not running; a pubsub topic without peers needs a peer that relays it")
        case .attached: Finding("relay", .ok, "attached")
        case .detached(let reason):
            Finding("relay", .fail, reason, remedy: "check that the Waku node runs, and that --relay is its REST API or multiaddr")
        }
    }

    /// - Parameter obstacle: a description of a silence that is too long; nil if there is none.
    package static func silence(_ obstacle: String?) -> Finding? {
        obstacle.map { Finding("silence", .fail, $0, remedy: "check the cluster, shard and peers of the Waku node") }
    }

    /// The check of ``catchUp(_:)``.
    package static let catchUpCheck = "cache"

    /// - Parameter obstacle: why missed messages are not looked up.
    package static func catchUp(_ obstacle: String) -> Finding {
        Finding(catchUpCheck, .warn, obstacle, remedy: "check that a node of --relay or --fleet has a store that answers")
    }

    /// - Parameter failure: why the database can't be written or read; nil if it can.
    package static func store(failure: String?) -> Finding {
        failure.map { Finding("store", .fail, $0) } ?? Finding("store", .ok, "readable and writable")
    }

    /// - Parameters:
    ///   - failure: the reason why other nodes take over this node's share; nil if they don't.
    ///   - status: nil before the first contact with the other nodes.
    package static func lease(failure: String?, status: ClusterStatus? = nil) -> Finding {
        if let failure { return Finding("cluster", .fail, failure) }
        guard let status else { return Finding("cluster", .ok, "the node has its share of the work") }
        guard status.unownedPartitions == 0 else {
            return Finding(
                "cluster", .warn, "\(status.unownedPartitions) of \(status.partitionCount) partitions have no owner; \(status.summary)",
                remedy: "wait 5 s: other nodes take over; if they don't, check that a node is neither draining nor without a lease")
        }
        return Finding("cluster", .ok, status.summary)
    }

    /// - Returns: nil for a single node, and if the database has no standbys.
    package static func standbys(_ status: ClusterStatus?) -> Finding? {
        guard let standbys = status?.standbys, !standbys.isEmpty else { return nil }
        let text = standbys.map { standby in
            let behind = standby.lagBytes.map { "\($0) bytes behind" } ?? "lag unknown"
            let delay = standby.lagSeconds.map { ", \($0) s" } ?? ""
            return "\(standby.name) \(standby.state), \(standby.sync), \(behind)\(delay)"
        }.joined(separator: "; ")
        guard standbys.allSatisfy(\.isConnected) else {
            return Finding(
                "standbys", .warn, text,
                remedy: "start the standby, or drop its slot (pg_drop_replication_slot): the server keeps write-ahead log for it")
        }
        guard standbys.contains(where: \.isFarBehind) else { return Finding("standbys", .ok, text) }
        return Finding(
            "standbys", .warn, text, remedy: "check the standby's log, disk and network: commits wait for it if it is synchronous")
    }

    /// - Parameter gap: how long messages can't be claimed; nil if they can.
    package static func claims(_ gap: Duration?) -> Finding? {
        gap.map { gap in
            Finding(
                "claims", .warn,
                "the database's clock was ahead: for \(gap.inWords), a message that is not answered in 0.7 s may be handled by two nodes",
                remedy: "keep the database's clock right by NTP")
        }
    }

    /// - Parameter conflicts: settings in which nodes must not differ but do, or must differ but don't.
    package static func nodes(_ conflicts: [String]) -> Finding? {
        conflicts.isEmpty
            ? nil
            : Finding(
                "nodes", .warn, conflicts.joined(separator: "; "),
                remedy: "start all nodes with the same options, and each with its own name and node key")
    }

    /// - Parameters:
    ///   - difference: the difference from a reference clock, in words.
    ///   - isWrong: whether the difference is too large for the node to work.
    ///   - isInStep: whether the difference is too small to mention.
    ///   - areAllOff: whether the clocks of all nodes differ from the database's. They share the work as usual then.
    package static func clock(_ difference: String, isWrong: Bool, isInStep: Bool, areAllOff: Bool = false) -> Finding {
        if isInStep { return Finding("clock", .ok, "in step") }
        if isWrong, areAllOff {
            return Finding(
                "clock", .warn, "\(difference), and so are the clocks of all nodes",
                remedy: "synchronise the clock of the database's machine by NTP; if it is right, those of all nodes")
        }
        return Finding("clock", isWrong ? .fail : .warn, difference, remedy: "synchronise both machines' clocks by NTP")
    }

    /// - Parameters:
    ///   - obstacle: why notifications can't be delivered; nil if they can.
    ///   - delay: a description of its slowness; nil if it is not slow. A slow gorush still accepts notifications.
    package static func gorush(_ name: String = "gorush", obstacle: String?, delay: String? = nil) -> Finding {
        if let obstacle { return Finding(name, .fail, obstacle, remedy: "run waku-push doctor, which inspects gorush") }
        if let delay { return Finding(name, .warn, delay, remedy: "see gorush's log, and its connection to Apple and Google") }
        return Finding(name, .ok, "accepts notifications")
    }

    /// - Parameters:
    ///   - waiting: the number of notifications that wait for push services.
    ///   - unavailable: the number of push services that are unavailable now. Others are not affected, so the node is ready.
    ///   - keyRefusal: why a push service did not accept the key in the last minutes; nil if all did.
    ///   - hasGorush: whether the node has a gorush as well.
    package static func webPush(key: String, waiting: Int, unavailable: Int, keyRefusal: String?, hasGorush: Bool) -> Finding {
        var text = "on, VAPID public key \(key), \(waiting) notifications wait"
        if unavailable > 0 { text += ", \(unavailable) push services unavailable" }
        if !hasGorush { text += "; no gorush: devices of APNs and Firebase are refused" }
        guard let keyRefusal else { return Finding("web push", .ok, text) }
        return Finding(
            "web push", .warn, "\(text); a push service does not accept the key: \(keyRefusal)",
            remedy: "see web_push_key_refused in the article Troubleshooting, and test a subscription by doctor --test-push")
    }

    /// Active alarms that no other check reports.
    package static func alarms(_ active: [Alarm]) -> Finding? {
        let unchecked = active.filter { !$0.kind.hasCheck }
        guard !unchecked.isEmpty else { return nil }
        return Finding(
            "alarms", .warn, unchecked.map { "\($0.kind.rawValue): \($0.kind.title) (\($0.reason))" }.joined(separator: "; "),
            remedy: "the article Troubleshooting has the remedy of each")
    }

    package static func drain(isOn: Bool) -> Finding? {
        isOn
            ? Finding("drain", .fail, "draining: registrations are refused", remedy: "waku-push admin drain --undo accepts them again")
            : nil
    }

    /// Below this limit most commits fail. The store reports the failures as well.
    private static let leastFreeBytes: Int64 = 128 << 10
    private static let fewFreeBytes: Int64 = 1 << 30
    /// Without a database only the audit log is written there, also to a file system in memory, as in compose.nodes.yaml.
    private static let fewFreeBytesForLogs: Int64 = 16 << 20

    /// Few are needed, for temporary files, backups and the database's log at the start.
    private static let fewFreeInodes: Int64 = 1000

    /// - Parameters:
    ///   - space: the free space on the data folder's file system; nil if unknown.
    ///   - hasDatabase: whether the database is in the data folder. Without it nothing that the node needs is written there.
    package static func freeDisk(_ space: DiskSpace?, hasDatabase: Bool = true) -> Finding {
        guard let space else { return Finding("disk", .warn, "free space is unknown") }
        let text = "\(space.bytes >> 20) MiB free"
        let loss = hasDatabase ? "commits fail" : "the audit log can't be written"
        let remedy = "free space on the data folder's file system: \(loss) when it is full"
        if space.bytes < leastFreeBytes, hasDatabase { return Finding("disk", .fail, text, remedy: remedy) }
        if let inodes = space.inodes, inodes < fewFreeInodes {
            return Finding(
                "disk", .warn, "\(text), \(inodes) inodes free",
                remedy: "remove files from the data folder's file system (df -i): without an inode no file can be made")
        }
        if space.bytes < (hasDatabase ? fewFreeBytes : fewFreeBytesForLogs) { return Finding("disk", .warn, text, remedy: remedy) }
        return Finding("disk", .ok, text)
    }

    /// Each connection and file uses one; the database uses about ten.
    private static let fewFiles = 1024

    package static func openFiles(_ files: OpenFiles?) -> Finding {
        guard let files else { return Finding("files", .warn, "the limit of open files is unknown") }
        let text = "\(files.used) of \(files.limit) open"
        let remedy = "raise the limit of open files (LimitNOFILE= of systemd, ulimit -n)"
        if files.used > files.limit - files.limit / 20 { return Finding("files", .fail, text, remedy: remedy) }
        if files.used > files.limit - files.limit / 5 || files.limit < fewFiles { return Finding("files", .warn, text, remedy: remedy) }
        return Finding("files", .ok, text)
    }
}
