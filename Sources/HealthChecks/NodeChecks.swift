package import Waku

/// Verdicts on a running node, from facts alone: readiness, `admin status` and `doctor` share them.
package enum NodeChecks {
    package static func relay(_ state: RelayState) -> Finding {
        switch state {
        case .attached: Finding("relay", .ok, "attached")
        case .detached(let reason): Finding("relay", .fail, reason, remedy: "see that the Waku node runs and --relay is its REST API")
        }
    }

    /// - Parameter obstacle: that no message came for too long; nil when there was none, or it is no matter.
    package static func silence(_ obstacle: String?) -> Finding? {
        obstacle.map { Finding("silence", .fail, $0, remedy: "see the cluster, shard and peers of the Waku node") }
    }

    /// - Parameter failure: why the database can't be written or read; nil when it can.
    package static func store(failure: String?) -> Finding {
        failure.map { Finding("store", .fail, $0) } ?? Finding("store", .ok, "written and read")
    }

    /// - Parameters:
    ///   - name: of the endpoint.
    ///   - obstacle: in the way of deliveries; nil when there is none.
    ///   - delay: that it is slow; nil when it is not. It takes notifications all the same.
    package static func gorush(_ name: String = "gorush", obstacle: String?, delay: String? = nil) -> Finding {
        if let obstacle { return Finding(name, .fail, obstacle, remedy: "waku-push doctor looks at gorush itself") }
        if let delay { return Finding(name, .warn, delay, remedy: "see gorush's log, and its way to Apple and Google") }
        return Finding(name, .ok, "takes notifications")
    }

    package static func drain(isOn: Bool) -> Finding? {
        isOn ? Finding("drain", .fail, "registrations are not taken", remedy: "waku-push admin drain --undo takes them again") : nil
    }

    /// Below it hardly a commit can be kept: but for that, the store says itself when there is no room.
    private static let leastFreeBytes: Int64 = 128 << 10
    private static let fewFreeBytes: Int64 = 1 << 30

    /// - Parameter bytes: that this user may still write where the data folder is; nil when that is unknown.
    package static func freeDisk(bytes: Int64?) -> Finding {
        guard let bytes else { return Finding("disk", .warn, "free space is unknown") }
        let text = "\(bytes >> 20) MiB free"
        let remedy = "free some space where the data folder is: commits fail when there is none"
        if bytes < leastFreeBytes { return Finding("disk", .fail, text, remedy: remedy) }
        if bytes < fewFreeBytes { return Finding("disk", .warn, text, remedy: remedy) }
        return Finding("disk", .ok, text)
    }

    /// A connection or a file takes one each; the database some ten.
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
