import Gorush
import NodeMetrics
import PushStore
import StatusProtocol
import Waku

/// Verdicts on everything around a node, whether it runs or not.
extension NodeChecks {
    /// In the order in which one would look.
    public static func doctor(_ facts: DoctorFacts) -> [Finding] {
        [key(problem: facts.keyProblem), folder(facts.folder)] + [freeDisk(bytes: facts.freeBytes), files(facts)]
            + [database(facts.database), daemon(facts.daemon)]
            + facts.relays.flatMap { relay($0, topics: facts.pubsubTopics) } + gaps(facts.daemon) + [selfTest(facts.selfTest)]
            + facts.gorushes.flatMap { gorush($0, facts) } + clocks(facts)
    }

    // MARK: This machine

    /// Of the daemon, if one runs.
    private static func files(_ facts: DoctorFacts) -> Finding {
        facts.daemon?.findings.first { $0.check == "files" } ?? openFiles(facts.files)
    }

    static func key(problem: String?) -> Finding {
        problem.map { Finding("key", .fail, $0) } ?? Finding("key", .ok, "read")
    }

    static func folder(_ folder: DoctorFacts.Folder) -> Finding {
        guard folder.exists else {
            return folder.isWritable
                ? Finding("data", .ok, "the folder is not there yet: the daemon makes it")
                : Finding("data", .fail, "the folder is not there, and can't be made", remedy: "make it, for the daemon's user")
        }
        guard folder.isWritable else {
            return Finding("data", .fail, "the folder can't be written to", remedy: "give the daemon's user access to it")
        }
        if folder.mode & 0o077 != 0 {
            let mode = "0" + String(folder.mode, radix: 8)
            return Finding("data", .warn, "others may look into the folder (mode \(mode))", remedy: "chmod 700 the data folder")
        }
        if !folder.isOwned { return Finding("data", .warn, "the folder is another user's", remedy: "run this as the daemon's user") }
        return Finding("data", .ok, "writable, for its owner alone")
    }

    static func database(_ database: DoctorFacts.Database) -> Finding {
        switch database {
        case .missing: return Finding("database", .ok, "none yet: the daemon makes it")
        case .unusable(let reason): return Finding("database", .fail, reason)
        case .inspected(let inspection, let statistics):
            let remedy = "waku-push admin check has the details; restore a backup"
            if let problem = inspection.problems.first { return Finding("database", .fail, "damaged: \(problem)", remedy: remedy) }
            let unreadable = (inspection.registrations?.unreadable ?? 0) + (inspection.notifications?.unreadable ?? 0)
            if unreadable > 0 { return Finding("database", .fail, "\(unreadable) rows can't be opened", remedy: remedy) }
            if inspection.isRotationUnfinished {
                return Finding(
                    "database", .warn, "a rotation of the storage key was interrupted", remedy: "waku-push admin rotate-storage-key again")
            }
            let opened = inspection.registrations == nil ? "rows not opened" : "rows open"
            return Finding("database", .ok, "sound, \(opened), \(statistics.apn + statistics.firebase) installations")
        }
    }

    static func daemon(_ status: NodeStatus?) -> Finding {
        guard let status else {
            return Finding("daemon", .warn, "none answers on the data folder", remedy: "start it, if it should run: waku-push serve")
        }
        let failing = status.findings.filter { $0.verdict == .fail }
        if failing.isEmpty {
            let text = "ready, version \(status.version), process \(status.processID)"
            // Doctor looks at the machine itself.
            let warnings = status.findings.filter { $0.verdict == .warn && !["disk", "files"].contains($0.check) }
            guard !warnings.isEmpty else { return Finding("daemon", .ok, text) }
            let reasons = warnings.map { "\($0.check): \($0.text)" }.joined(separator: "; ")
            return Finding("daemon", .warn, "\(text); \(reasons)", remedy: warnings.compactMap(\.remedy).first)
        }
        let reasons = failing.map { "\($0.check): \($0.text)" }.joined(separator: "; ")
        return Finding("daemon", .fail, "not ready: \(reasons)", remedy: failing.compactMap(\.remedy).first)
    }

    // MARK: The relay

    static func relay(_ relay: DoctorFacts.Relay, topics: [String]) -> [Finding] {
        switch relay {
        case .loopback:
            return [
                Finding(
                    "relay", .warn, "a network of this process's own: nobody else is on it",
                    remedy: "give --relay the REST API of a Waku node")
            ]
        case .unreachable(let address, let reason):
            return [
                Finding(
                    "relay", .fail, "\(address): \(reason)",
                    remedy: "see that the Waku node runs with --rest=true, and that --relay is right")
            ]
        case .node(let node):
            return [health(node), network(node, topics), peers(node, topics), store(node)]
        case .peer(let address, let connection):
            return [peer(address, connection)]
        case .fleet(let name, let count):
            guard let count else { return [Finding("relay", .warn, "fleet \(name): not looked at, since no daemon runs")] }
            guard count > 0 else {
                return [
                    Finding(
                        "relay", .fail, "fleet \(name): none of its nodes brings messages",
                        remedy: "see the log for why: names are looked up in the DNS, and nodes dialled by TCP")
                ]
            }
            return [Finding("relay", .ok, "fleet \(name): \(count) nodes bring messages")]
        }
    }

    private static func peer(_ address: String, _ connection: DoctorFacts.Connection?) -> Finding {
        switch connection {
        case nil: Finding("relay", .warn, "\(address): not looked at, since no daemon runs")
        case .missing:
            Finding(
                "relay", .fail, "\(address): not connected",
                remedy: "see that the node runs and listens there, under this peer id and on this cluster")
        case .connected(0):
            Finding(
                "relay", .warn, "\(address): connected, and in no mesh with it",
                remedy: "see that it relays the topics of --pubsub-topic; waku-push admin peers tells more")
        case .connected: Finding("relay", .ok, "\(address): connected, and in a mesh with it")
        case .filterNode: Finding("relay", .ok, "\(address): connected, and it took this node's topics")
        }
    }

    private static func health(_ node: DoctorFacts.RelayNode) -> Finding {
        let version = node.version.map { ", \($0)" } ?? ""
        let remedy = "see the Waku node's log: it may be starting, or have no peers"
        if let relay = node.relayHealth, relay.uppercased() != "READY" {
            return Finding("relay", .fail, "\(node.address)\(version): its relay is \(relay)", remedy: remedy)
        }
        if node.health == "UNKNOWN" { return Finding("relay", .ok, "\(node.address)\(version) answers") }
        if node.health != "READY" { return Finding("relay", .warn, "\(node.address)\(version) is \(node.health)", remedy: remedy) }
        return Finding("relay", .ok, "\(node.address)\(version) is ready")
    }

    private static func network(_ node: DoctorFacts.RelayNode, _ topics: [String]) -> Finding {
        let names = topics.compactMap { RelayShard($0) }
        guard let cluster = node.cluster, let shards = node.shards else {
            return Finding(
                "network", .warn, "the node does not tell its cluster and shards", remedy: "see that they are those of --pubsub-topic")
        }
        if let wrong = names.first(where: { Int($0.cluster) != cluster }) {
            return Finding(
                "network", .fail, "the node is in cluster \(cluster), and --pubsub-topic is in \(wrong.cluster)",
                remedy: "run the Waku node with --cluster-id=\(wrong.cluster), or give another --pubsub-topic")
        }
        let missing = names.map { Int($0.shard) }.filter { !shards.contains($0) }
        if !missing.isEmpty {
            let list = missing.map(String.init).joined(separator: ", ")
            return Finding(
                "network", .warn, "the node does not advertise shard \(list)", remedy: "run the Waku node with --shard=\(missing[0])")
        }
        return Finding("network", .ok, "cluster \(cluster), shards \(names.map { String($0.shard) }.joined(separator: ", "))")
    }

    private static func peers(_ node: DoctorFacts.RelayNode, _ topics: [String]) -> Finding {
        guard let peers = node.peers else {
            return Finding(
                "peers", .ok, "not told: the Waku node's admin API is off (--rest-admin=true on a trusted interface shows them)")
        }
        let lonely = topics.compactMap { RelayShard($0) }.map { Int($0.shard) }.filter { peers[$0, default: 0] == 0 }
        if !lonely.isEmpty {
            return Finding(
                "peers", .fail, "none on shard \(lonely.map(String.init).joined(separator: ", "))",
                remedy: "give the Waku node bootstrap nodes of this network (--staticnode, --dns-discovery-url)")
        }
        let counts = peers.sorted { $0.key < $1.key }.map { "\($0.value) on shard \($0.key)" }.joined(separator: ", ")
        return Finding(
            "peers", peers.values.min() ?? 0 < 3 ? .warn : .ok, counts, remedy: "with fewer than three the node is easily cut off")
    }

    private static func store(_ node: DoctorFacts.RelayNode) -> Finding {
        switch node.store {
        case .present: Finding("store", .ok, "present")
        case .missing:
            Finding(
                "store", .warn, "the Waku node has none: what polling misses is lost",
                remedy: "run the Waku node with --store=true, or with --storenode of one")
        case .unknown(let reason): Finding("store", .warn, "not asked: \(reason)", remedy: "see the Waku node's log")
        }
    }

    /// The REST API does not tell how many messages are kept for pollers; what was lost shows it.
    private static func gaps(_ status: NodeStatus?) -> [Finding] {
        guard let status, let count = status.counters[Counter.gapFound.name], count > 0 else { return [] }
        return [
            Finding(
                "cache", .warn, "\(count) gaps since the start: messages may have been lost between two polls",
                remedy: "run the Waku node with --rest-relay-cache-capacity=10000, and let nobody else poll it")
        ]
    }

    static func selfTest(_ test: DoctorFacts.SelfTest) -> Finding {
        switch test {
        case .seen(let milliseconds, let how): Finding("message", .ok, "to itself seen after \(milliseconds) ms, \(how)")
        case .notSeen(let how):
            Finding(
                "message", .fail, "to itself not seen within 5 s, \(how)",
                remedy: "see that the Waku node has peers, and that nobody else polls it")
        case .notPublished(let reason): Finding("message", .fail, "to itself not published: \(reason)", remedy: "see the Waku node's log")
        case .notDone(let reason): Finding("message", .warn, "to itself not sent: \(reason)")
        }
    }

    // MARK: gorush

    private static func gorush(_ endpoint: DoctorFacts.Gorush, _ facts: DoctorFacts) -> [Finding] {
        let name = endpoint.rule.name
        guard let gorush = endpoint.inspection else { return [Finding(name, .fail, endpoint.problem ?? "not asked")] }
        guard let status = gorush.healthStatus else {
            return [
                Finding(name, .fail, gorush.problem ?? "no answer", remedy: "see that gorush runs, and that --gorush is its URL")
            ]
        }
        var statistics: RegistrationStatistics?
        if case .inspected(_, let found) = facts.database { statistics = found }
        return [answer(name, gorush, status), post(gorush.dryPost, of: name)]
            + (gorush.configuration.map {
                [platforms($0, statistics, of: endpoint.rule), verdicts($0, takesFeedback: facts.takesFeedback, of: name)]
            } ?? [
                Finding("\(name) setup", .ok, "not told: its /api/config is closed, as it should be to others")
            ])
    }

    private static func answer(_ name: String, _ gorush: GorushInspection, _ status: Int) -> Finding {
        let version = gorush.version.map { "version \($0)" } ?? "version unknown"
        if (200..<300).contains(status) { return Finding(name, .ok, "answers, \(version)") }
        return Finding(name, .warn, "answers \(status) to /healthz, \(version)", remedy: "see gorush's log, and what stands before it")
    }

    static func post(_ post: GorushInspection.DryPost, of gorush: String = "gorush") -> Finding {
        let name = "\(gorush) post"
        switch post {
        case .understood: return Finding(name, .ok, "would be taken (nothing was delivered)")
        case .failed(let reason): return Finding(name, .fail, reason, remedy: "see gorush's log")
        case .otherServer:
            return Finding(
                name, .fail, "the server at this URL did not answer like gorush", remedy: "check --gorush: its path comes before /api/push")
        case .status(401), .status(403), .status(407):
            return Finding(name, .fail, "this node may not post there", remedy: "check the options for gorush's credentials")
        case .status(429), .status(500...):
            return Finding(name, .fail, "gorush is overloaded or out of order", remedy: "see gorush's log, and what stands before it")
        case .status(let status):
            return Finding(name, .fail, "status \(status): there is no gorush at this URL", remedy: "check --gorush")
        }
    }

    private static func platforms(
        _ setup: GorushInspection.Configuration, _ statistics: RegistrationStatistics?, of rule: EndpointRule
    ) -> Finding {
        let name = "\(rule.name) setup"
        let all = [
            (Platform.apn, "APN", setup.isAPNEnabled, statistics?.apn ?? 0, "ios"),
            (.firebase, "Firebase", setup.isFirebaseEnabled, statistics?.firebase ?? 0, "android"),
        ]
        let platforms = all.filter { rule.platforms?.contains($0.0) ?? true }.map { ($0.1, $0.2, $0.3, $0.4) }
        let disabled = platforms.filter { $0.1 == false }
        if let hit = disabled.first(where: { $0.2 > 0 }) {
            return Finding(
                name, .fail, "\(hit.0) is switched off there, and \(hit.2) installations have it: their notifications vanish",
                remedy: "set \(hit.3).enabled in gorush's configuration")
        }
        if let off = disabled.first {
            return Finding(
                name, .warn, "\(disabled.map(\.0).joined(separator: " and ")) switched off there",
                remedy: "set \(off.3).enabled in gorush's configuration, if there are such devices")
        }
        return Finding(name, .ok, "\(platforms.map(\.0).joined(separator: " and ")) on")
    }

    private static func verdicts(_ setup: GorushInspection.Configuration, takesFeedback: Bool, of gorush: String) -> Finding {
        let name = "\(gorush) verdicts"
        switch (setup.isSync == true, setup.hasFeedbackHook, takesFeedback) {
        case (true, false, _): return Finding(name, .ok, "sync: its replies tell which tokens are dead")
        case (false, true, true): return Finding(name, .ok, "its feedback hook tells which tokens are dead")
        case (true, true, _):
            return Finding(name, .warn, "sync and the feedback hook are both on", remedy: "let gorush do one of them")
        case (false, true, false):
            return Finding(name, .warn, "it has a feedback hook, and this node takes none", remedy: "give --feedback-secret-file")
        case (false, false, _):
            return Finding(
                name, .warn, "neither core.sync nor a feedback hook: dead tokens are never found",
                remedy: "set core.sync: true, or core.feedback_hook_url, in gorush's configuration")
        }
    }

    // MARK: Clocks

    private static func clocks(_ facts: DoctorFacts) -> [Finding] {
        var others: [(String, Duration)] = []
        for case .node(let node) in facts.relays {
            if let ahead = node.clockAhead { others.append(("the Waku node", ahead)) }
        }
        for gorush in facts.gorushes {
            if let ahead = gorush.inspection?.clockAhead { others.append((gorush.rule.name, ahead)) }
        }
        return [clock(others)]
    }

    private static let noticeableOffset = Duration.seconds(5)
    private static let worstOffset = Duration.seconds(20)

    /// - Parameter others: who, and how far ahead of this machine's clock its own is.
    static func clock(_ others: [(name: String, ahead: Duration)]) -> Finding {
        guard let (name, ahead) = others.max(by: { abs($0.ahead) < abs($1.ahead) }) else {
            return Finding("clock", .warn, "nobody tells the time to compare with", remedy: "see that this machine's clock is set by NTP")
        }
        let seconds = ahead.components.seconds
        guard abs(ahead) > noticeableOffset else { return Finding("clock", .ok, "as that of \(name)") }
        return Finding(
            "clock", abs(ahead) > worstOffset ? .fail : .warn,
            "\(Swift.abs(seconds)) s \(seconds > 0 ? "behind" : "ahead of") that of \(name)",
            remedy: "set this machine's clock by NTP: relays drop messages that are more than 20 s off")
    }

    private static func abs(_ duration: Duration) -> Duration {
        duration < .zero ? .zero - duration : duration
    }
}
