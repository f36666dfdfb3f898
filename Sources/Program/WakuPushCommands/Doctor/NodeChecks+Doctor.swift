import Core
import PushNode
import Delivery
import NodeAPI
import NwakuRelay
import StatusServer
import Storage

/// Findings on a node's machine, database, daemon and clock.
extension NodeChecks {
    /// All findings, ordered from causes to consequences.
    static func doctor(_ facts: DoctorFacts) -> [Finding] {
        let disk = freeDisk(facts.space, hasDatabase: facts.hasDatabaseInDataFolder)
        let machine = [key(problem: facts.keyProblem), folder(facts.folder), disk, files(facts)]
        let known = (machine + facts.protocols + facts.webPush).filter { $0.verdict == .fail }.map(\.text)
        // Failures of options may name file and line first.
        let obstacles = facts.obstacles.filter { obstacle in !known.contains { obstacle.text.hasSuffix($0) } }
        return machine + [database(facts.database, of: facts.daemon)] + obstacles + facts.protocols + facts.unserved + [
            daemon(facts.daemon)
        ]
            + cluster(facts.daemon) + facts.relays.flatMap { relay($0, topics: facts.pubsubTopics, isOnly: facts.relays.count == 1) }
            + gaps(facts) + [selfTest(facts)]
            + facts.gorushes.flatMap { gorush($0, facts) } + webPush(facts.daemon) + facts.webPush
            + clocks(facts)
    }

    // MARK: This machine

    /// The daemon's open files, if one runs.
    private static func files(_ facts: DoctorFacts) -> Finding {
        facts.daemon?.findings.first { $0.check == "files" } ?? openFiles(facts.files)
    }

    static func key(problem: String?) -> Finding {
        problem.map { Finding("key", .fail, $0) } ?? Finding("key", .ok, "read")
    }

    static func folder(_ folder: DoctorFacts.Folder) -> Finding {
        if folder.isReadOnly {
            return Finding(
                "data", .fail, "the folder is on a read-only file system",
                remedy: "see the kernel's log for errors of the disk; mount it for writing")
        }
        guard folder.exists else {
            return folder.isWritable
                ? Finding("data", .ok, "the folder does not exist yet: the daemon creates it")
                : Finding("data", .fail, "the folder does not exist and can't be made", remedy: "create it for the daemon's user")
        }
        guard folder.isWritable else {
            return Finding("data", .fail, "the folder can't be written to", remedy: "give the daemon's user access to it")
        }
        if folder.mode & 0o077 != 0 {
            let mode = "0" + String(folder.mode, radix: 8)
            return Finding("data", .warn, "the folder is accessible by others (mode \(mode))", remedy: "chmod 700 the data folder")
        }
        if !folder.isOwned {
            return Finding("data", .warn, "the folder belongs to another user", remedy: "run this as the daemon's user or root")
        }
        return Finding("data", .ok, "writable, accessible by its owner only")
    }

    /// A request takes some nine round trips, three of them commits, and is to be answered within 3 s.
    private static let tolerableCommit = Duration.milliseconds(50)

    /// - Parameter daemon: nil if none answers. It knows more of the database that it has open than this program, which finds a lost file to be missing, and
    ///   one that a hanging commit has locked to be in use.
    static func database(_ database: DoctorFacts.Database, of daemon: NodeStatus?) -> Finding {
        let finding = Self.database(database)
        if case .inspected = database { return finding }
        if let known = daemon?.findings.first(where: { $0.check == "store" && $0.verdict == .fail }) {
            return Finding("database", .fail, known.text, remedy: known.remedy)
        }
        if case .missing = database, daemon != nil {
            return Finding(
                "database", .fail, "gone, beside a running daemon",
                remedy: "run doctor again in 10 s: the daemon notices, and copies its rows")
        }
        return finding
    }

    static func database(_ database: DoctorFacts.Database) -> Finding {
        switch database {
        case .missing: return Finding("database", .ok, "none yet: the daemon creates it")
        case .unusable(let reason): return Finding("database", .fail, reason)
        case .inspected(let inspection, let statistics, let ofProtocols, let commitTime):
            let remedy = "waku-push admin check has the details; restore a backup"
            if let problem = inspection.problems.first { return Finding("database", .fail, "damaged: \(problem)", remedy: remedy) }
            let unreadable = inspection.unreadableCount
            if unreadable > 0 { return Finding("database", .fail, "\(unreadable) rows can't be decrypted", remedy: remedy) }
            if inspection.isRotationUnfinished {
                return Finding(
                    "database", .warn, "a rotation of the storage key was interrupted", remedy: "waku-push admin rotate-storage-key again")
            }
            if let commitTime, commitTime > tolerableCommit {
                return Finding(
                    "database", .warn, "a commit takes \(Int(commitTime / .milliseconds(1))) ms, so many answers are late",
                    remedy: "run PostgreSQL and its synchronous standby near the node, and check their disks")
            }
            let opened = inspection.rows == nil ? "rows not decrypted" : "all rows decrypted"
            let others = ofProtocols.compactMap { stored in stored.count > 0 ? stored.name.map { ", \(stored.count) \($0)" } : nil }
            return Finding("database", .ok, "intact, \(opened), \(statistics.installations) installations" + others.joined())
        }
    }

    static func daemon(_ status: NodeStatus?) -> Finding {
        guard let status else {
            return Finding("daemon", .warn, "no daemon answers on the data folder", remedy: "start it, if it should run: waku-push serve")
        }
        let failing = status.findings.filter { $0.verdict == .fail }
        // The doctor checks disk and files itself, and lists the others.
        let listed = ["disk", "files", catchUpCheck, devicesCheck] + clusterChecks
        let warnings = status.findings.filter { $0.verdict == .warn && !listed.contains($0.check) }
        func reasons(_ findings: [Finding]) -> String { findings.map { "\($0.check): \($0.text)" }.joined(separator: "; ") }
        guard failing.isEmpty else {
            // The remedy for gorush is to run doctor, which is running.
            let remedy = failing.compactMap(\.remedy).first { !$0.hasPrefix("run waku-push doctor") }
            return Finding("daemon", .fail, "not ready: \(reasons(failing))", remedy: remedy)
        }
        let text = "ready, version \(status.version), process \(status.processID)"
        guard !warnings.isEmpty else { return Finding("daemon", .ok, text) }
        return Finding("daemon", .warn, "\(text); \(reasons(warnings))", remedy: warnings.compactMap(\.remedy).first)
    }

    private static let clusterChecks = ["cluster", "standbys", "nodes", "claims"]

    /// Nodes, their partitions, and the database's standbys, as the daemon sees them; empty for a single node.
    static func cluster(_ status: NodeStatus?) -> [Finding] {
        (status?.findings ?? []).filter { clusterChecks.contains($0.check) }
    }

    private static func selfTest(_ facts: DoctorFacts) -> Finding {
        switch facts.selfTest {
        case .seen(let milliseconds, let how): Finding("message", .ok, "to itself received after \(milliseconds) ms, \(how)")
        case .notSeen where facts.isGossipOnly:
            Finding("message", .ok, "to itself published; peers do not return a message to its publisher")
        case .notSeen(let how):
            Finding(
                "message", .fail, "to itself not received within 5 s, \(how)",
                remedy: "check that the Waku node has peers and delivers at once, and that no other program polls it")
        case .notPublished(let reason): Finding("message", .fail, "to itself not published: \(reason)", remedy: "see the Waku node's log")
        case .notDone(let reason): Finding("message", .warn, "to itself not sent: \(reason)")
        }
    }

    // MARK: Clocks

    private static func clocks(_ facts: DoctorFacts) -> [Finding] {
        var others: [(String, Duration)] = []
        for case .node(_, let node) in facts.relays {
            if let ahead = node.clockAhead { others.append(("the Waku node", ahead)) }
        }
        others += facts.gorushes.compactMap { gorush in gorush.inspection?.clockAhead.map { (gorush.rule.name, $0) } }
        return [clock(others)]
    }

    private static let noticeableOffset = Duration.seconds(5)

    /// - Parameter others: names, and how far their clocks are ahead of this machine's.
    static func clock(_ others: [(name: String, ahead: Duration)]) -> Finding {
        guard let (name, ahead) = others.max(by: { abs($0.ahead) < abs($1.ahead) }) else {
            return Finding(
                "clock", .warn, "no other clock to compare with", remedy: "check that this machine's clock is synchronised by NTP")
        }
        let seconds = ahead.components.seconds
        guard abs(ahead) > noticeableOffset else { return Finding("clock", .ok, "in step with that of \(name)") }
        return Finding(
            "clock", abs(ahead) > ClockWatch.tolerable ? .fail : .warn,
            "\(Swift.abs(seconds)) s \(seconds > 0 ? "behind" : "ahead of") that of \(name)",
            remedy: "synchronise this machine's clock by NTP: relays drop messages that are more than 20 s off")
    }

    private static func abs(_ duration: Duration) -> Duration {
        duration < .zero ? .zero - duration : duration
    }
}
