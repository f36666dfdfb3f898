package import Dispatch
package import NodeAPI
package import Storage

/// The operations of ``ClusterDatabase`` that a node uses: the simulation of the whole node has a model of the database.
///
/// Calls block, so they need a thread that may be blocked.
package protocol SharedDatabase: Sendable {
    func prepare(notices: [Notice]) throws(StoreError)
    func requireFreeName(_ name: String) throws(StoreError)
    func now() throws(StoreError) -> Int64
    func close()

    // MARK: Leases and partitions

    func heartbeat(_ heartbeat: Heartbeat) throws(StoreError) -> ClusterView
    func leave(_ node: NodeID) throws(StoreError)
    func maintain(owner: NodeID, epoch: UInt64) throws(StoreError) -> Bool
    func standbys() throws(StoreError) -> [ClusterStatus.Standby]

    // MARK: Messages

    func write(_ row: FinishedLog.Row) throws(StoreError)
    func finishedRows(after sequences: [NodeID: Int64], except own: NodeID) throws(StoreError) -> [FinishedRow]
    func claims(_ keys: [(hour: ClaimWindow.Hour, key: MessageKey)]) throws(StoreError) -> [MessageKey: Claim]
    func claimWindow() throws(StoreError) -> ClaimWindow

    // MARK: Deliveries

    func ids(of table: Table, by column: Column, in partitions: [PartitionNumber]) throws(StoreError) -> [Int64]
    func waiting<Value: Sendable>(
        _ ids: [Int64], columns: [Column], _ value: (Row, _ mark: (mark: DeliveryMark, age: Duration)?) throws -> Value?
    ) throws(StoreError) -> [Value]
    func accepted(among deliveries: [[UInt8]]) throws(StoreError) -> [[UInt8]]

    // MARK: Notifications

    func changes(since start: Int64?, after place: LoggedChanges.Place?, limit: Int) throws(StoreError) -> LoggedChanges
    func noticeListener(on channels: [String]) -> any NoticeListener
}

/// A connection on which notifications of other nodes arrive: see ``ClusterListener``.
package protocol NoticeListener: Sendable {
    /// Waits for the next event.
    ///
    /// - Parameter thread: may be blocked meanwhile.
    func next(timeout: Duration, on thread: DispatchQueue) async -> Result<ClusterListener.Event, StoreError>
    /// Ends the wait.
    func close()
}

extension ClusterDatabase: SharedDatabase {
    package func noticeListener(on channels: [String]) -> any NoticeListener { listener(on: channels) }
}

extension ClusterListener: NoticeListener {
    package func next(timeout: Duration, on thread: DispatchQueue) async -> Result<Event, StoreError> {
        await withCheckedContinuation { continuation in
            thread.async { continuation.resume(returning: Result { () throws(StoreError) in try self.next(timeout: timeout) }) }
        }
    }
}
