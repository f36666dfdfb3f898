import PushNode
import ArgumentParser
import Delivery
import Foundation
import NodeAPI
import NodeAssembly
import StatusServer
import Storage

extension Admin {
    struct Status: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the status of a running node: readiness, findings, outbox and counters.",
            discussion: """
                EXIT CODES
                  0   running and ready
                  2   running but not ready
                  69  no daemon answers; figures from the database are shown
                  See waku-push --help for the others.
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        func execute() async throws {
            let client = try client()
            let live = try await client.status()
            var overview = Overview(live: live, registrations: nil, databaseProblem: nil)
            do {
                overview.registrations = try StoredNumbers(of: await openStore())
            } catch {
                guard live != nil else { throw error }
                // An operator needs the daemon's part while the database is away.
                overview.databaseProblem = CommandFailure(explaining: error)?.message ?? "\(error)"
            }
            if admin.json { try Output.json(overview) } else { overview.print() }
            guard let live else {
                CommandFailure.report(client.noDaemon.message)
                throw ExitCode(client.noDaemon.code.rawValue)
            }
            if !live.isReady { throw ExitCode(2) }
        }
    }
}

/// Numbers of rows in the database, and its size.
struct StoredNumbers: FieldsReport {
    private let statistics: RegistrationStatistics
    private let ofProtocols: [StoredCount]
    private let waiting, databaseBytes: Int

    /// Reads all registrations: a second for a million.
    init(of store: any Store) throws {
        statistics = try store.read(StatusServer.Registrations.statistics())
        ofProtocols = try NodeAssembly.storedCounts(in: store)
        waiting = try store.read(DeliveryStorage.waitingCount())
        databaseBytes = store.byteCount
    }

    /// By key, as in JSON.
    func encode(to encoder: any Encoder) throws {
        let own = [
            "registrants": statistics.registrants, "apn": statistics.apn, "firebase": statistics.firebase, "webPush": statistics.webPush,
            "tombstones": statistics.tombstones, "waiting": waiting, "databaseBytes": databaseBytes,
        ]
        try own.merging(ofProtocols.map { ($0.key, $0.count) }) { first, _ in first }.encode(to: encoder)
    }

    var fields: [(String, String)] {
        var counts = [
            ("registrants", statistics.registrants), ("installations, APN", statistics.apn),
            ("installations, Firebase", statistics.firebase), ("installations, Web Push", statistics.webPush),
            ("tombstones", statistics.tombstones),
        ]
        counts += ofProtocols.compactMap { stored in stored.name.map { ($0, stored.count) } }
        counts.append(("notifications waiting", waiting))
        return counts.map { ($0, String($1)) } + [("database", "\(databaseBytes / 1024) KiB")]
    }
}

private struct Overview: Encodable {
    /// nil when no daemon answers.
    let live: NodeStatus?
    /// nil when a daemon answers and its database does not.
    var registrations: StoredNumbers?
    /// Why there are no numbers from the database.
    var databaseProblem: String?

    private func posts(_ live: NodeStatus) -> String {
        if live.hasGorush == false { return "none: the node runs with --gorush none" }
        return live.breaker == "closed" ? "active" : "paused: circuit breaker \(live.breaker)"
    }

    func print() {
        var stored = registrations?.fields ?? []
        if let databaseProblem { stored.append(("database", "unavailable: \(databaseProblem)")) }
        guard let live else {
            Output.line("not running")
            return Output.fields(stored)
        }
        // Only a node with several identities has such facts.
        let identities = (live.protocols ?? []).flatMap(\.facts).filter { $0.name.hasPrefix("identity ") }.map { ($0.name, $0.value) }
        let about: [(String, String)] = [
            ("waku-push", "\(live.version), process \(live.processID)"),
            ("running", "for \(Date.now.timeIntervalSince(live.started).inWords)"),
            ("state", (live.isReady ? "ready" : "not ready") + (live.isDraining ? ", draining" : "")),
            ("key", "0x" + live.publicKey), ("pubsub topics", live.pubsubTopics.joined(separator: " ")),
            ("query topics", String(live.queryTopics)), ("posts to gorush", posts(live)), ("log level", live.logLevel ?? "fixed"),
        ]
        Output.fields(about + identities)
        Output.line()
        live.findings.print()
        Output.line()
        if let cluster = live.cluster { cluster.print() }
        if let first = live.outbox.firstExpires {
            stored.append(("next expires", "in \(max(0, first.timeIntervalSinceNow).inWords)"))
        }
        Output.fields(stored)
        let shown = Set((about + identities).map(\.0))
        for proto in live.protocols ?? [] {
            let facts = proto.facts.filter { !shown.contains($0.name) }.map { ($0.name, $0.value) }
            guard !facts.isEmpty else { continue }
            Output.line()
            Output.fields([("protocol", proto.name)] + facts)
        }
        guard !live.counters.isEmpty else { return }
        Output.line()
        Output.fields(live.counters.sorted { $0.key < $1.key }.map { ($0.key, String($0.value)) })
    }
}

extension ClusterStatus {
    /// Prints the nodes as a table, with standbys and the last failover below.
    fileprivate func print() {
        Output.table(
            ["NODE", "LEASE", "RENEWED", "PARTITIONS", "MAINTENANCE"],
            nodes.map { node in
                [
                    node.name + (node.isSelf ? " (this node)" : ""), node.state,
                    node.secondsSinceRenewal.map { "\($0.inWords) ago" } ?? "-", "\(node.partitions)", node.isMaintainer ? "yes" : "-",
                ]
            })
        var fields = [("partitions without an owner", "\(unownedPartitions) of \(partitionCount)")]
        if let standbys {
            fields += standbys.map { standby in
                let lag = standby.lagBytes.map { "\($0) bytes behind" } ?? "lag unknown"
                return ("standby \(standby.name)", "\(standby.state), \(standby.sync), \(lag)")
            }
            if standbys.isEmpty { fields.append(("standbys of the database", "none")) }
        } else {
            fields.append(("standbys of the database", standbysProblem ?? "unknown"))
        }
        let failover = lastFailover.map { "\(Date(timeIntervalSince1970: $0.time).formatted(.iso8601)), \($0.text)" }
        fields.append(("last failover", failover ?? "none since the node started"))
        Output.fields(fields)
        Output.line()
    }
}

extension [Finding] {
    /// Prints each finding on a line, with its remedy below.
    func print() {
        let width = map(\.check.count).max() ?? 0
        for finding in self {
            let name = finding.check + String(repeating: " ", count: width - finding.check.count)
            let verdict = finding.verdict.rawValue + String(repeating: " ", count: 4 - finding.verdict.rawValue.count)
            Output.line("\(name)  \(verdict)  \(finding.text)")
            if let remedy = finding.remedy, finding.verdict > .ok {
                Output.line(String(repeating: " ", count: width + 8) + "→ " + remedy)
            }
        }
    }
}

extension TimeInterval {
    /// `3 d 4 h`, `12 min`, `5 s`.
    var inWords: String {
        let seconds = Int(self)
        return switch seconds {
        case ..<60: "\(seconds) s"
        case ..<3600: "\(seconds / 60) min"
        case ..<86_400: "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        default: "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
        }
    }
}
