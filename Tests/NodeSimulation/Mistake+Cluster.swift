import Cluster
import Core
import NodeAPI
import Storage
import Synchronization

extension Mistake {
    func database(_ database: any SharedDatabase) -> any SharedDatabase {
        switch self {
        case .ignoredLease, .unreadShare: MistakenDatabase(base: database, mistake: self)
        default: database
        }
    }
}

/// Passes most calls on.
private final class MistakenDatabase: SharedDatabase {
    let base: any SharedDatabase
    let mistake: Mistake
    /// The last view that the database gave.
    private let last = Mutex<ClusterView?>(nil)

    init(base: any SharedDatabase, mistake: Mistake) {
        (self.base, self.mistake) = (base, mistake)
    }

    func heartbeat(_ heartbeat: Heartbeat) throws(StoreError) -> ClusterView {
        let view = try base.heartbeat(heartbeat)
        guard mistake == .ignoredLease else { return view }
        return last.withLock { last in
            if view.isMember { last = view }
            return last ?? view
        }
    }

    func ids(of table: Table, by column: Column, in partitions: [PartitionNumber]) throws(StoreError) -> [Int64] {
        mistake == .unreadShare ? [] : try base.ids(of: table, by: column, in: partitions)
    }

    func prepare(notices: [Notice]) throws(StoreError) { try base.prepare(notices: notices) }
    func requireFreeName(_ name: String) throws(StoreError) { try base.requireFreeName(name) }
    func now() throws(StoreError) -> Int64 { try base.now() }
    func close() { base.close() }
    func leave(_ node: NodeID) throws(StoreError) { try base.leave(node) }
    func maintain(owner: NodeID, epoch: UInt64) throws(StoreError) -> Bool { try base.maintain(owner: owner, epoch: epoch) }
    func standbys() throws(StoreError) -> [ClusterStatus.Standby] { try base.standbys() }
    func write(_ row: FinishedLog.Row) throws(StoreError) { try base.write(row) }
    func finishedRows(after sequences: [NodeID: Int64], except own: NodeID) throws(StoreError) -> [FinishedRow] {
        try base.finishedRows(after: sequences, except: own)
    }
    func claims(_ keys: [(hour: ClaimWindow.Hour, key: MessageKey)]) throws(StoreError) -> [MessageKey: Claim] { try base.claims(keys) }
    func claimWindow() throws(StoreError) -> ClaimWindow { try base.claimWindow() }
    func waiting<Value: Sendable>(
        _ ids: [Int64], columns: [Column], _ value: (Row, _ mark: (mark: DeliveryMark, age: Duration)?) throws -> Value?
    ) throws(StoreError) -> [Value] { try base.waiting(ids, columns: columns, value) }
    func accepted(among deliveries: [[UInt8]]) throws(StoreError) -> [[UInt8]] { try base.accepted(among: deliveries) }
    func changes(since start: Int64?, after place: LoggedChanges.Place?, limit: Int) throws(StoreError) -> LoggedChanges {
        try base.changes(since: start, after: place, limit: limit)
    }
    func noticeListener(on channels: [String]) -> any NoticeListener { base.noticeListener(on: channels) }
}
