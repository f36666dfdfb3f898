import Cluster
import Core
import Delivery
import Foundation
import GRDB
import NodeAPI
import PostgreSQLModel
import Storage

private typealias Row = Storage.Row
private typealias Column = Storage.Column
private typealias Table = Storage.Table

extension SharedServer {
    static let unreachable = StoreError(code: .unavailable, message: "the modelled PostgreSQL can't be reached")
    private static let unknown = StoreError(code: .unavailable, message: "whether the transaction was committed is not known")
    private static let refused = StoreError(code: .unavailable, message: "the modelled PostgreSQL refuses all transactions")

    /// The connections of one run of a node: what `ClusterDatabase` does with statements.
    struct Connection: SharedDatabase {
        private static let finishedRowLimit = ClusterDatabase.finishedRowLimit
        private static let endedRetention: Int64 = 3_600

        let server: SharedServer
        let node: NodeProcess
        let life: Int
        private var times: ClusterConfiguration { SharedServer.times }

        init(_ server: SharedServer, of node: NodeProcess) {
            (self.server, self.node, life) = (server, node, node.life)
        }

        private func read<Result>(_ body: () -> Result) throws(StoreError) -> Result {
            guard server.world.isReachable(from: node) else { throw SharedServer.unreachable }
            return body()
        }

        private func transaction<Result>(_ body: () -> Result) throws(StoreError) -> Result {
            switch server.world.decideTransaction(of: node) {
            case .committed: return body()
            case .refused: throw SharedServer.refused
            case .unanswered(isCommitted: let isCommitted):
                if isCommitted { _ = body() }
                throw SharedServer.unknown
            case .unreachable: throw SharedServer.unreachable
            }
        }

        func prepare(notices: [Notice]) throws(StoreError) { server.prepare(notices) }
        /// A killed node waits for its lease: the model starts it at once, with a lease beside the former one.
        func requireFreeName(_ name: String) throws(StoreError) {}
        func now() throws(StoreError) -> Int64 { try read { server.now / 1_000_000_000 } }
        func close() {}
        func standbys() throws(StoreError) -> [ClusterStatus.Standby] { [] }

        // MARK: Leases and partitions

        func heartbeat(_ heartbeat: Heartbeat) throws(StoreError) -> ClusterView {
            let asked = Instant.now
            return try transaction {
                if heartbeat.releases.contains(where: { !$0.isSettled }) { server.world.excuseHandedOverPosts(of: life) }
                return server.execute(heartbeat, askedAt: asked)
            }
        }

        func leave(_ node: NodeID) throws(StoreError) {
            try transaction { server.end(node) }
        }

        func maintain(owner: NodeID, epoch: UInt64) throws(StoreError) -> Bool {
            try transaction {
                guard server.partitions[times.maintenancePartition] == PartitionRow(owner: owner, epoch: epoch) else { return false }
                server.maintainClaims()
                let now = server.now
                let ended = Set(server.leases.filter { $0.value.row.state == .ended }.keys)
                for node in server.finished.keys where server.leases[node] == nil || ended.contains(node) {
                    server.finished[node]?.removeAll { $0.time < now - times.finishedRetention.nanoseconds }
                }
                server.changes.removeAll { $0.time < now - times.changeRetention.nanoseconds }
                server.leases = server.leases.filter { ($0.value.endedAt ?? now) > now - Self.endedRetention * 1_000_000_000 }
                return true
            }
        }

        // MARK: Messages

        func write(_ row: FinishedLog.Row) throws(StoreError) {
            try transaction {
                var rows = server.finished[row.node] ?? []
                if !rows.contains(where: { $0.row.sequence == row.sequence }) {
                    rows.append((FinishedRow(node: row.node, sequence: row.sequence, prefixes: row.prefixes), server.now))
                }
                server.finished[row.node] = rows.filter { $0.row.sequence > row.deleteUpTo }
            }
        }

        func finishedRows(after sequences: [NodeID: Int64], except own: NodeID) throws(StoreError) -> [FinishedRow] {
            try read {
                let others = server.finished.filter { $0.key != own }.sorted { $0.key < $1.key }
                let rows = others.flatMap { node, rows in
                    rows.map(\.row).filter { row in sequences[node].map { row.sequence > $0 } ?? true }.sorted { $0.sequence < $1.sequence }
                }
                return Array(rows.prefix(Self.finishedRowLimit))
            }
        }

        func claims(_ keys: [(hour: ClaimWindow.Hour, key: MessageKey)]) throws(StoreError) -> [MessageKey: Claim] {
            try read {
                var claims: [MessageKey: Claim] = [:]
                for (hour, key) in keys {
                    let sql = "SELECT node, kind FROM claim WHERE hour = ? AND key = ?"
                    guard let row = server.rows(sql, [hour, Data(key.bytes)]).first, let kind = Claim.Kind(rawValue: row[1]) else {
                        continue
                    }
                    claims[key] = Claim(node: NodeID(rawValue: UInt64(bitPattern: row[0])), kind: kind)
                }
                return claims
            }
        }

        func claimWindow() throws(StoreError) -> ClaimWindow { try read { server.window } }

        // MARK: Deliveries

        func ids(of table: Storage.Table, by column: Storage.Column, in partitions: [PartitionNumber]) throws(StoreError) -> [Int64] {
            try read {
                let owned = Set(partitions)
                return server.rows("SELECT id, \"\(column.name)\" FROM \"\(table.name)\" ORDER BY id", []).compactMap { row in
                    let (id, device): (Int64, Int64) = (row[0], row[1])
                    return owned.contains(Int(device) & (times.partitionCount - 1)) ? id : nil
                }
            }
        }

        func waiting<Value: Sendable>(
            _ ids: [Int64], columns: [Storage.Column],
            _ value: (Storage.Row, _ mark: (mark: DeliveryMark, age: Duration)?) throws -> Value?
        ) throws(StoreError) -> [Value] {
            let outbox = ClusterNode.outbox.table.name
            let names = columns.map { "o.\"\($0.name)\"" }.joined(separator: ", ")
            let list = "[\(ids.map(String.init).joined(separator: ", "))]"
            let found = try read {
                server.rows(
                    """
                    SELECT \(names), m.node, m.epoch FROM "\(outbox)" o LEFT JOIN cluster_mark m ON m.row_id = o.id
                    WHERE o.id IN (SELECT value FROM json_each(?)) ORDER BY o.id
                    """, [list])
            }
            do {
                return try found.compactMap { row in
                    let values = Row((0..<columns.count).map { Storage.Value(row[$0] as DatabaseValue) })
                    let mark = (row[columns.count] as Int64?).map { owner in
                        DeliveryMark(
                            owner: NodeID(rawValue: UInt64(bitPattern: owner)), epoch: UInt64(bitPattern: row[columns.count + 1] as Int64))
                    }
                    let id: Int64 = try values.integer(0)
                    return try value(values, mark.map { ($0, .nanoseconds(server.now - (server.markTimes[id] ?? server.now))) })
                }
            } catch {
                throw StoreError(code: .damaged, message: "\(error)")
            }
        }

        func accepted(among deliveries: [[UInt8]]) throws(StoreError) -> [[UInt8]] {
            let (table, column) = (ClusterNode.outbox.accepted.name, ClusterNode.outbox.delivery.name)
            return try read {
                deliveries.filter { !server.rows("SELECT id FROM \"\(table)\" WHERE \"\(column)\" = ?", [Data($0)]).isEmpty }
            }
        }

        // MARK: Notifications

        func changes(since start: Int64?, after place: LoggedChanges.Place?, limit: Int) throws(StoreError) -> LoggedChanges {
            try read {
                let found = server.changes.filter { $0.time / 1_000 >= start ?? 0 }
                return LoggedChanges(
                    payloads: Dictionary(grouping: found, by: \.channel).mapValues { Set($0.map(\.payload)).sorted() },
                    readAt: server.now / 1_000, next: nil)
            }
        }

        func noticeListener(on channels: [String]) -> any NoticeListener {
            let listener = Listener(server.world, of: node, life: life, channels)
            server.add(listener)
            return listener
        }
    }

    // MARK: Statements

    fileprivate func rows(_ sql: String, _ arguments: StatementArguments) -> [GRDB.Row] {
        do {
            return try rows.unsafeRead { try GRDB.Row.fetchAll($0.cachedStatement(sql: sql), arguments: arguments) }
        } catch {
            world.fail("the server can't be read: \(error)")
            return []
        }
    }

    func end(_ node: NodeID) {
        guard leases[node]?.row.state != .ended else { return }
        leases[node]?.row.state = .ended
        leases[node]?.row.renewals += 1
        leases[node]?.endedAt = now
    }

    /// See `Heartbeat` for its parts.
    fileprivate func execute(_ heartbeat: Heartbeat, askedAt: Instant) -> ClusterView {
        let own = heartbeat.lease.node
        var lease = heartbeat.lease
        let former = leases[own]?.row
        guard former != nil || heartbeat.isFirst, former?.state != .ended else {
            return ClusterView(isMember: false, leases: [], partitions: [])
        }
        lease.renewals = (former?.renewals ?? 0) + 1
        leases[own] = Lease(row: lease)
        if world.options.mistake != .endlessLeases {
            for ended in heartbeat.ends where leases[ended.node]?.row.renewals == ended.renewals { end(ended.node) }
        }
        for release in heartbeat.releases
        where partitions[release.partition] == PartitionRow(owner: own, epoch: release.epoch) {
            if release.isSettled { removeMarks(of: own, release) }
            partitions[release.partition].owner = nil
        }
        if !heartbeat.releases.isEmpty { send(ClusterDatabase.partitionsChannel, [""]) }
        for take in heartbeat.takes where partitions[take.partition].epoch == take.observedEpoch {
            if let owner = partitions[take.partition].owner, let lease = leases[owner], lease.row.state != .ended { continue }
            partitions[take.partition] = PartitionRow(owner: own, epoch: take.observedEpoch + 1)
        }
        return ClusterView(
            isMember: true, leases: leases.values.map(\.row).sorted { $0.node < $1.node }, partitions: partitions,
            clock: .init(time: .nanoseconds(now), askedAt: askedAt, receivedAt: .now), timeline: timeline)
    }

    private func removeMarks(of node: NodeID, _ release: Heartbeat.Release) {
        let outbox = ClusterNode.outbox
        do {
            try rows.write { db in
                try db.execute(
                    sql: """
                        DELETE FROM cluster_mark WHERE node = ? AND epoch = ? AND row_id IN
                        (SELECT id FROM "\(outbox.table.name)" WHERE "\(outbox.device.name)" & ? = ?)
                        """,
                    arguments: [
                        Int64(bitPattern: node.rawValue), Int64(bitPattern: release.epoch), Self.times.partitionCount - 1,
                        release.partition,
                    ])
            }
        } catch {
            world.fail("the server can't remove marks: \(error)")
        }
    }
}

extension Storage.Value {
    fileprivate init(_ value: DatabaseValue) {
        switch value.storage {
        case .null: self = .null
        case .int64(let integer): self = .integer(integer)
        case .string(let text): self = .text(text)
        case .blob(let data): self = .bytes(Array(data))
        case .double: preconditionFailure("the tables have no fractions")
        }
    }
}
