@testable import PushNode
import Delivery
@testable import WakuPushCommands
import Foundation
@testable import NodeMetrics
@testable import NodeAPI
@testable import NwakuRelay
@testable import StatusServer
import Storage
import Testing
import Core
import Waku
import WakuCrypto

/// Facts in, verdicts out.
struct NodeChecksTests {
    private static let address = "http://10.0.0.5:8645"
    private var node = NodeInspection(
        health: health("READY"), version: "v0.36.0", shards: RelayShards(clusterID: 16, shards: [32, 64]), peers: [32: 7],
        store: .present, clockAhead: .zero)
    private var gorush = GorushInspection(
        healthStatus: 200, version: "1.18.4",
        configuration: GorushInspection.Configuration(isSync: true, isAPNEnabled: true, isFirebaseEnabled: true, hasFeedbackHook: false),
        dryPost: .understood, clockAhead: .seconds(1))

    private static func health(_ status: String, relay: String? = "READY") -> NodeHealth {
        NodeHealth(status: status, protocols: relay.map { ["Relay": $0] } ?? [:])
    }

    private func facts(_ change: (inout DoctorFacts) -> Void = { _ in }) -> DoctorFacts {
        var statistics = RegistrationStatistics()
        statistics.apn = 3
        var facts = DoctorFacts(
            keyProblem: nil, folder: DoctorFacts.Folder(exists: true, isOwned: true, isWritable: true, mode: 0o700),
            space: DiskSpace(bytes: 50 << 30, inodes: 1 << 20), files: OpenFiles(used: 30, limit: 20_000),
            database: .inspected(StoreInspection(rows: ["registrations": StoreInspection.Rows(count: 3)]), statistics),
            daemon: Self.status(),
            pubsubTopics: ["/waku/2/rs/16/32"], relays: [.node(address: Self.address, node)],
            selfTest: .seen(milliseconds: 12, how: "by the running daemon"),
            gorushes: [.init(EndpointRule(), gorush)], takesFeedback: false)
        change(&facts)
        return facts
    }

    private static func status(findings: [Finding] = [], counters: [String: Int] = [:]) -> NodeStatus {
        NodeStatus(
            version: "0.1.0", processID: 1, started: Date(timeIntervalSince1970: 0), publicKey: "04", isReady: findings.worst < .fail,
            isDraining: false, logLevel: "info", findings: findings, pubsubTopics: [], queryTopics: 0,
            outbox: NodeStatus.Outbox(waiting: 0, firstExpires: nil), breaker: "closed", counters: counters, protocols: nil, cluster: nil)
    }

    /// The one finding that is not ok.
    private func only(_ change: (inout DoctorFacts) -> Void, _ location: SourceLocation = #_sourceLocation) throws -> Finding {
        let found = NodeChecks.doctor(facts(change)).filter { $0.verdict != .ok }
        try #require(found.count == 1, "\(found)", sourceLocation: location)
        return found[0]
    }

    private func expect(
        _ check: String, _ verdict: Finding.Verdict, _ text: String, _ location: SourceLocation = #_sourceLocation,
        _ change: (inout DoctorFacts) -> Void
    ) throws {
        let finding = try only(change, location)
        #expect(finding.check == check, sourceLocation: location)
        #expect(finding.verdict == verdict, sourceLocation: location)
        #expect(finding.text.contains(text), "\(finding.text)", sourceLocation: location)
    }

    @Test func allIsWell() {
        let found = NodeChecks.doctor(facts())
        #expect(found.allSatisfy { $0.verdict == .ok }, "\(found)")
        #expect(found.worst == .ok)
        #expect(found.count >= 14)
    }

    @Test func findingsOfProtocolsAreListed() throws {
        try expect("echo", .warn, "off, but 3 records") { $0.protocols = [Finding("echo", .warn, "off, but 3 records are stored")] }
    }

    @Test func theMachine() throws {
        try expect("key", .fail, "is missing") { $0.keyProblem = "identity file id.key is missing" }
        try expect("data", .fail, "can't be made") { $0.folder = .init(exists: false, isOwned: false, isWritable: false, mode: 0o700) }
        try expect("data", .fail, "can't be written to") { $0.folder = .init(exists: true, isOwned: true, isWritable: false, mode: 0o700) }
        try expect("data", .fail, "read-only file system") {
            $0.folder = .init(exists: true, isOwned: true, isWritable: false, mode: 0o700, isReadOnly: true)
        }
        try expect("data", .warn, "mode 0755") { $0.folder = .init(exists: true, isOwned: true, isWritable: true, mode: 0o755) }
        try expect("data", .warn, "another user") { $0.folder = .init(exists: true, isOwned: false, isWritable: true, mode: 0o700) }
        try expect("disk", .warn, "512 MiB free") { $0.space = DiskSpace(bytes: 512 << 20) }
        try expect("disk", .warn, "1 MiB free") { $0.space = DiskSpace(bytes: 1 << 20) }
        try expect("disk", .fail, "0 MiB free") { $0.space = DiskSpace(bytes: 4096) }
        // With PostgreSQL no commit needs this disk: the node stays ready.
        try expect("disk", .warn, "0 MiB free") {
            $0.space = DiskSpace(bytes: 4096)
            $0.hasDatabaseInDataFolder = false
        }
        try expect("disk", .warn, "15 MiB free") {
            $0.space = DiskSpace(bytes: (16 << 20) - 1)
            $0.hasDatabaseInDataFolder = false
        }
        // A file system in memory, as in compose.nodes.yaml.
        let inMemory = facts {
            $0.space = DiskSpace(bytes: 256 << 20)
            $0.hasDatabaseInDataFolder = false
        }
        #expect(NodeChecks.doctor(inMemory).worst == .ok)
        try expect("disk", .warn, "51200 MiB free, 999 inodes free") { $0.space?.inodes = 999 }
        // Some file systems do not limit them.
        #expect(NodeChecks.doctor(facts { $0.space?.inodes = nil }).worst == .ok)
        try expect("disk", .warn, "unknown") { $0.space = nil }
        try expect("files", .warn, "10 of 256") { $0.files = OpenFiles(used: 10, limit: 256) }
        try expect("files", .warn, "900 of 1024") { $0.files = OpenFiles(used: 900, limit: 1024) }
        try expect("files", .fail, "1000 of 1024") { $0.files = OpenFiles(used: 1000, limit: 1024) }
        try expect("files", .warn, "the limit of open files is unknown") { $0.files = nil }
    }

    @Test func subscriptionsThatNameNoKeyAreCountedBesideThoseForAFormerOne() throws {
        let keys = [P256PrivateKey.generate().publicKey, P256PrivateKey.generate().publicKey]
        func text(_ former: Int) -> String? {
            WebPushKeyUse(total: 30, counts: [VAPIDKey.mark(of: keys[1]): former], keys: keys).finding("Session")?.text
        }
        #expect(text(4) == "Session: 4 Web Push subscriptions are for a former VAPID key; 26 do not name theirs")
        #expect(text(30) == "Session: 30 Web Push subscriptions are for a former VAPID key")
        #expect(text(0) == "Session: no Web Push subscription names a former VAPID key; 30 do not name theirs")
    }

    @Test func activeAlarmsAreAWarningUnlessAnotherCheckTellsTheSame() throws {
        var log = AlarmLog()
        _ = log.raise(.silence, "no messages", at: .now())
        #expect(NodeChecks.alarms(log.alarms) == nil)
        _ = log.raise(.pushServiceCredentials, "apn: credentials", at: .now())
        let finding = try #require(NodeChecks.alarms(log.alarms))
        #expect(finding.verdict == .warn)
        #expect(finding.text == "push_service_credentials: gorush's certificate, key or account is not accepted (apn: credentials)")
    }

    @Test func aDaemonKnowsMoreOfTheDatabaseThatItHasOpen() {
        func found(_ database: DoctorFacts.Database, _ daemon: NodeStatus?) -> Finding { NodeChecks.database(database, of: daemon) }
        let failing = Self.status(findings: [NodeChecks.store(failure: "the disk has not answered for 12 s")])
        for database in [DoctorFacts.Database.missing, .unusable("is locked by another program")] {
            #expect(found(database, failing) == Finding("database", .fail, "the disk has not answered for 12 s"))
        }
        #expect(found(.missing, Self.status()).verdict == .fail)
        #expect(found(.missing, nil).verdict == .ok)
        #expect(found(.unusable("is locked by another program"), Self.status()).text == "is locked by another program")
        #expect(found(.inspected(StoreInspection(), RegistrationStatistics()), failing).verdict == .ok)
    }

    @Test func theDatabaseAndTheDaemon() throws {
        try expect("database", .fail, "belongs to another identity") { $0.database = .unusable("it belongs to another identity") }
        try expect("database", .fail, "damaged: row 3 missing") {
            $0.database = .inspected(StoreInspection(problems: ["row 3 missing"]), RegistrationStatistics())
        }
        try expect("database", .fail, "2 rows can't be decrypted") {
            $0.database = .inspected(
                StoreInspection(rows: ["registrations": .init(count: 5, unreadable: 1), "notifications": .init(count: 2, unreadable: 1)]),
                RegistrationStatistics())
        }
        try expect("database", .warn, "rotation") {
            $0.database = .inspected(StoreInspection(isRotationUnfinished: true), RegistrationStatistics())
        }
        let stored = [
            StoredCount(key: "a", name: "v0.1 devices", count: 0), StoredCount(key: "b", name: "Session subscriptions", count: 4),
        ]
        let intact = NodeChecks.database(.inspected(StoreInspection(), RegistrationStatistics(), ofProtocols: stored))
        #expect(intact.verdict == .ok && intact.text == "intact, rows not decrypted, 0 installations, 4 Session subscriptions")
        func commits(_ time: Duration) -> Finding {
            NodeChecks.database(.inspected(StoreInspection(), RegistrationStatistics(), commitTime: time))
        }
        #expect(commits(.milliseconds(50)).verdict == .ok)
        #expect(commits(.microseconds(103_700)).verdict == .warn)
        #expect(commits(.microseconds(103_700)).text == "a commit takes 103 ms, so many answers are late")
        try expect("daemon", .warn, "no daemon answers") { $0.daemon = nil }
        try expect("daemon", .fail, "not ready: gorush: unavailable") {
            $0.daemon = Self.status(findings: [Finding("gorush", .fail, "unavailable, 1 waiting: status 503")])
        }
        // Warnings are no reason why it is not ready, and their remedies are for something else.
        let unroutable = try #require(NodeChecks.unroutable(2))
        let unready = NodeChecks.daemon(
            Self.status(findings: [
                Finding("gorush", .fail, "unavailable", remedy: "run waku-push doctor"), unroutable,
                Finding("relay", .warn, "nothing is received", remedy: "start what is not running"),
            ]))
        #expect(unready.verdict == .fail && unready.text == "not ready: gorush: unavailable" && unready.remedy == nil)
        try expect("daemon", .warn, "outbox: 2 notifications wait") { $0.daemon = Self.status(findings: [unroutable]) }
        // The daemon's finding on devices has a row of its own.
        let unserved = try #require(NodeChecks.unserved("Status", [.webPush: 4, .apn: 2]) { $0 == .apn })
        try expect("devices", .warn, "Status: no endpoint for registered devices (4 webpush)") {
            $0.unserved = [unserved]
            $0.daemon = Self.status(findings: [unserved])
        }
        try expect("daemon", .warn, "gorush: is slow: 3 posts unanswered for 12 s") {
            let slow = NodeChecks.gorush(obstacle: nil, delay: "is slow: 3 posts unanswered for 12 s, 40 notifications wait")
            $0.daemon = Self.status(findings: [slow])
        }
        func cluster(unowned: Int = 0, lag: Int = 0, slots: [String] = []) -> [Finding] {
            let node = ClusterStatus.Node(
                name: "a", state: "live", isSelf: true, secondsSinceRenewal: 0, partitions: 256 - unowned, isMaintainer: true)
            let standby = ClusterStatus.Standby(name: "db_2", state: "streaming", sync: "sync", lagBytes: lag, lagSeconds: nil)
            let unused = slots.map {
                ClusterStatus.Standby(name: $0, state: ClusterStatus.Standby.notConnected, sync: "slot", lagBytes: 4096, lagSeconds: nil)
            }
            let status = ClusterStatus(
                nodes: [node], partitionCount: 256, unownedPartitions: unowned, standbys: [standby] + unused, standbysProblem: nil,
                lastFailover: nil)
            return [NodeChecks.lease(failure: nil, status: status), NodeChecks.standbys(status)].compactMap(\.self)
        }
        #expect(cluster().map(\.verdict) == [.ok, .ok])
        try expect("cluster", .warn, "6 of 256 partitions have no owner") { $0.daemon = Self.status(findings: cluster(unowned: 6)) }
        try expect("standbys", .warn, "db_2 streaming, sync, 100000000 bytes behind") {
            $0.daemon = Self.status(findings: cluster(lag: 100_000_000))
        }
        try expect("standbys", .warn, "db_2 streaming, sync, 0 bytes behind; db_3 not connected, slot, 4096 bytes behind") {
            $0.daemon = Self.status(findings: cluster(slots: ["db_3"]))
        }
        #expect(NodeChecks.claims(nil) == nil)
        try expect("claims", .warn, "the database's clock was ahead: for 42 min") {
            $0.daemon = Self.status(findings: [NodeChecks.claims(.seconds(2520))].compactMap(\.self))
        }
        try expect("cache", .warn, "7 gaps") {
            $0.daemon = Self.status(counters: ["gap: messages may have been lost on a pubsub topic": 7])
        }
        // The default of nwaku, which can't be asked for its capacity.
        let full = try only { $0.daemon = Self.status(counters: ["gap: messages may have been lost on a pubsub topic": 7]) }
        #expect(full.remedy?.contains("polls of 50 messages or more count even then") == true)
        // The daemon's finding takes the place of the number.
        try expect("cache", .warn, "missed messages can't be looked up: no peer has a store") {
            $0.daemon = Self.status(
                findings: [NodeChecks.catchUp("missed messages can't be looked up: no peer has a store")],
                counters: ["gap: messages may have been lost on a pubsub topic": 7])
        }
        try expect("cache", .warn, "1 gap since the start: messages may have been lost while no peer delivered messages") {
            $0.relays = [.peer(address: "/ip4/10.0.0.5/tcp/60000/p2p/16Uiu2HA", .connected(meshCount: 1))]
            $0.daemon = Self.status(counters: ["gap: messages may have been lost on a pubsub topic": 1])
        }
    }

    @Test func theRelay() throws {
        func nodes(_ change: (inout NodeInspection) -> Void) -> [DoctorFacts.Relay] {
            var other = node
            change(&other)
            return [.node(address: Self.address, other)]
        }
        try expect("relay", .warn, "without other nodes") { $0.relays = [.loopback] }
        try expect("relay", .fail, "refused") { $0.relays = [.unreachable(address: "http://x", reason: "refused")] }
        // Of several nodes each row names its own.
        let two = NodeChecks.doctor(facts { $0.relays = nodes { _ in } + [.node(address: "http://10.0.0.6:8645", node)] })
        #expect(
            two.filter { $0.check == "network" }.map(\.text) == [
                "\(Self.address): cluster 16, shards 32", "http://10.0.0.6:8645: cluster 16, shards 32",
            ])
        let peer = "/ip4/10.0.0.5/tcp/60000/p2p/16Uiu2HA"
        try expect("relay", .warn, "\(peer): unknown") { $0.relays = [.peer(address: peer, nil)] }
        try expect("relay", .fail, "\(peer): not connected") { $0.relays = [.peer(address: peer, .missing)] }
        try expect("relay", .warn, "in no mesh") { $0.relays = [.peer(address: peer, .connected(meshCount: 0))] }
        try expect("relay", .warn, "fleet f: unknown") { $0.relays = [.fleet(name: "f", workingPeerCount: nil)] }
        try expect("relay", .fail, "fleet f: none") { $0.relays = [.fleet(name: "f", workingPeerCount: 0)] }
        let well = NodeChecks.doctor(
            facts { $0.relays = [.peer(address: peer, .connected(meshCount: 1)), .fleet(name: "f", workingPeerCount: 3)] })
        #expect(well.worst == .ok)
        #expect(
            well.filter { $0.check == "relay" }.map(\.text) == [
                "\(peer): connected, and in a mesh", "fleet f: 3 nodes deliver messages",
            ])
        let filterNode = NodeChecks.doctor(facts { $0.relays = [.peer(address: peer, .filterNode)] })
        #expect(filterNode.first { $0.check == "relay" }?.text == "\(peer): connected, and it accepted this node's topics")
        #expect(filterNode.worst == .ok)
        try expect("relay", .fail, "NOT_READY") { $0.relays = nodes { $0.health = Self.health("READY", relay: "NOT_READY") } }
        try expect("relay", .warn, "INITIALIZING") { $0.relays = nodes { $0.health = Self.health("INITIALIZING", relay: nil) } }
        try expect("network", .warn, "unknown") { $0.relays = nodes { $0.shards = nil } }
        try expect("network", .fail, "cluster 1, but --pubsub-topic is in 16") {
            $0.relays = nodes { $0.shards = RelayShards(clusterID: 1, shards: [32, 64]) }
        }
        try expect("network", .warn, "shard 32") { $0.relays = nodes { $0.shards = RelayShards(clusterID: 16, shards: [1]) } }
        try expect("peers", .fail, "none on shard 32") { $0.relays = nodes { $0.peers = [32: 0] } }
        try expect("peers", .warn, "2 on shard 32") { $0.relays = nodes { $0.peers = [32: 2] } }
        try expect("store", .warn, "none") { $0.relays = nodes { $0.store = .missing } }
        try expect("store", .warn, "look-ups by hash") { $0.relays = nodes { $0.store = .withoutLookUps } }
        try expect("store", .warn, "429") { $0.relays = nodes { $0.store = .unknown("status 429") } }
        #expect(NodeChecks.doctor(facts { $0.relays = nodes { ($0.peers, $0.health) = (nil, Self.health("UNKNOWN")) } }).worst == .ok)
    }

    @Test func theMessage() throws {
        try expect("message", .fail, "not received within 5 s") { $0.selfTest = .notSeen(how: "by the running daemon") }
        let peer = DoctorFacts.Relay.peer(address: "/ip4/10.0.0.5/tcp/60000/p2p/16Uiu2HA", .connected(meshCount: 1))
        // Gossip does not return a message to its publisher.
        let seen = NodeChecks.doctor(
            facts {
                $0.relays = [peer]
                $0.selfTest = .notSeen(how: "by the running daemon")
            })
        #expect(seen.first { $0.check == "message" }?.verdict == .ok)
        try expect("message", .fail, "not published: no peers") { $0.selfTest = .notPublished("no peers") }
        try expect("message", .warn, "no store") { $0.selfTest = .notDone("there is no store") }
    }

    @Test func gorushAsItIs() throws {
        func with(_ change: (inout Parts) -> Void) -> GorushInspection {
            var parts = Parts()
            change(&parts)
            return GorushInspection(
                healthStatus: parts.health, problem: parts.problem, version: "1", configuration: parts.setup, dryPost: parts.post,
                clockAhead: parts.ahead)
        }
        try expect("gorush", .fail, "has a query") { $0.gorushes = [.init(EndpointRule(), nil, problem: "the URL has a query")] }
        try expect("gorush", .fail, "no connection") {
            $0.gorushes = [.init(EndpointRule(), with { ($0.health, $0.problem) = (nil, "no connection") })]
        }
        let untrusted = GorushInspection(healthStatus: nil, problem: "no trusted connection", isUntrusted: true, dryPost: .failed(""))
        let found = NodeChecks.gorush(.init(EndpointRule(), untrusted), facts())
        #expect(found.first?.remedy?.hasPrefix("renew the certificate of gorush") == true)
        func certificate(_ days: Int?) throws -> Finding? {
            let inspection = GorushInspection(healthStatus: 200, dryPost: .understood, certificateDaysLeft: days)
            return NodeChecks.gorush(.init(EndpointRule(), inspection), facts()).first
        }
        #expect(try certificate(13)?.text.hasPrefix("its certificate expires in 13 days") == true)
        #expect(try [14, nil].map { try certificate($0)?.verdict } == [.ok, .ok])
        try expect("gorush", .warn, "answers 503") { $0.gorushes = [.init(EndpointRule(), with { $0.health = 503 })] }
        try expect("gorush post", .fail, "may not post") { $0.gorushes = [.init(EndpointRule(), with { $0.post = .status(401) })] }
        try expect("gorush post", .fail, "there is no gorush") { $0.gorushes = [.init(EndpointRule(), with { $0.post = .status(404) })] }
        try expect("gorush post", .fail, "overloaded or failing") { $0.gorushes = [.init(EndpointRule(), with { $0.post = .status(502) })] }
        try expect("gorush post", .fail, "did not answer like gorush") {
            $0.gorushes = [.init(EndpointRule(), with { $0.post = .otherServer })]
        }
        try expect("gorush post", .fail, "timed out") { $0.gorushes = [.init(EndpointRule(), with { $0.post = .failed("timed out") })] }
        try expect("gorush setup", .fail, "APN is disabled there, and 3 installations") {
            $0.gorushes = [
                .init(
                    EndpointRule(),
                    with { $0.setup = .init(isSync: true, isAPNEnabled: false, isFirebaseEnabled: true, hasFeedbackHook: false) })
            ]
        }
        try expect("gorush setup", .warn, "Firebase disabled") {
            $0.gorushes = [
                .init(
                    EndpointRule(),
                    with { $0.setup = .init(isSync: true, isAPNEnabled: true, isFirebaseEnabled: false, hasFeedbackHook: false) })
            ]
        }
        func verdicts(_ isSync: Bool, _ hook: Bool) -> GorushInspection {
            with { $0.setup = .init(isSync: isSync, isAPNEnabled: true, isFirebaseEnabled: true, hasFeedbackHook: hook) }
        }
        try expect("gorush verdicts", .warn, "neither") { $0.gorushes = [.init(EndpointRule(), verdicts(false, false))] }
        try expect("gorush verdicts", .warn, "both enabled") { $0.gorushes = [.init(EndpointRule(), verdicts(true, true))] }
        try expect("gorush verdicts", .warn, "this node serves no /feedback") {
            $0.gorushes = [.init(EndpointRule(), verdicts(false, true))]
        }
        #expect(
            NodeChecks.doctor(facts { ($0.gorushes, $0.takesFeedback) = ([.init(EndpointRule(), verdicts(false, true))], true) }).worst
                == .ok)
        #expect(NodeChecks.doctor(facts { $0.gorushes = [.init(EndpointRule(), with { $0.setup = nil })] }).worst == .ok)
    }

    private struct Parts {
        var health: Int? = 200
        var problem: String?
        var setup: GorushInspection.Configuration? = .init(
            isSync: true, isAPNEnabled: true, isFirebaseEnabled: true, hasFeedbackHook: false)
        var post = GorushInspection.DryPost.understood
        var ahead: Duration? = .zero
    }

    @Test(arguments: [(6, Finding.Verdict.warn), (-6, .warn), (15, .warn), (16, .fail), (-16, .fail), (5, .ok), (-5, .ok)])
    func clocks(seconds: Int, verdict: Finding.Verdict) throws {
        var other = node
        other.clockAhead = .seconds(seconds)
        let found = try #require(NodeChecks.doctor(facts { $0.relays = [.node(address: Self.address, other)] }).last)
        #expect(found.check == "clock")
        #expect(found.verdict == verdict)
        if verdict != .ok { #expect(found.text == "\(abs(seconds)) s \(seconds > 0 ? "behind" : "ahead of") that of the Waku node") }
    }

    @Test func noOtherClock() throws {
        var (other, silent) = (node, Parts())
        (other.clockAhead, silent.ahead) = (nil, nil)
        try expect("clock", .warn, "no other clock") {
            $0.relays = [.node(address: Self.address, other)]
            $0.gorushes = [.init(EndpointRule(), GorushInspection(healthStatus: 200, configuration: silent.setup, dryPost: .understood))]
        }
    }

    @Test func anAttachedRelayNamesThePeersAndTopicsWithoutMessages() {
        #expect(NodeChecks.relay(.attached) == Finding("relay", .ok, "attached"))
        let finding = NodeChecks.relay(.attached, detached: ["/dns4/x/tcp/1/p2p/y", "/waku/2/rs/16/64"])
        #expect(finding.verdict == .warn)
        #expect(finding.text == "attached, but nothing is received from /dns4/x/tcp/1/p2p/y, /waku/2/rs/16/64")
        #expect(NodeChecks.relay(.detached("no peer was reached yet"), detached: ["/waku/2/rs/16/64"]).verdict == .fail)
    }
}
