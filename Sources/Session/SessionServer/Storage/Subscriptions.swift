import Delivery
import Core
package import SessionProtocol
package import Storage

/// Reads and changes stored subscriptions.
package struct Subscriptions: Sendable {
    let sealer: Sealer
    /// Whether other nodes use the store. Then deliveries are noted among ``SessionStorage/seen`` as soon as they are in the outbox.
    let isShared: Bool
    /// Seals waiting notifications again for a renewed subscription; nil: they stay as they are.
    let sodium: Sodium?

    /// - Parameter isShared: whether other nodes use the store. Nodes of earlier releases find deliveries only in ``SessionStorage/seen``.
    package init(_ sealer: Sealer, isShared: Bool = false, sodium: Sodium? = nil) {
        self.sealer = sealer
        self.isShared = isShared
        self.sodium = sodium
    }

    static func device(_ row: Int64) -> DeviceID { DeviceID(SessionStorage.protocolNumber, row: row) }

    // MARK: Names

    /// The name of a subscription: a keyed hash of `pubkey(33) ‖ service ‖ 0 ‖ token`.
    package func name(of account: AccountID, _ device: SubscriberDevice) -> [UInt8] {
        sealer.lookUpHash(
            of: account.bytes + Array(device.service.rawValue.utf8) + [0] + Array(device.identifier.utf8), in: "session_subscription")
    }

    /// Keyed hash of `pubkey(33)`.
    package func accountHash(_ account: AccountID) -> [UInt8] { sealer.lookUpHash(of: account.bytes, in: "session_account") }

    /// Keyed hash of `service ‖ 0 ‖ token`.
    func tokenHash(_ device: SubscriberDevice) -> [UInt8] {
        sealer.lookUpHash(of: Array(device.service.rawValue.utf8) + [0] + Array(device.identifier.utf8), in: "session_token")
    }

    // MARK: Contents

    static func binding(_ name: [UInt8], _ signedAt: Int64) -> [Value] { [.bytes(name), .integer(signedAt)] }

    func seal(_ record: SubscriptionRecord, named name: [UInt8]) -> Value {
        sealer.seal(record.encoded(), in: SessionStorage.subscription, boundTo: Self.binding(name, record.authority.signedAt))
    }

    /// - Throws: `CryptoError`, `UnexpectedValue`
    func open(_ sealed: [UInt8], named name: [UInt8], signedAt: Int64) throws -> SubscriptionRecord {
        try SubscriptionRecord(parsing: try sealer.open(sealed, in: SessionStorage.subscription, boundTo: Self.binding(name, signedAt)))
    }

    // MARK: Expiry

    /// The lowest `sig_ts` that is not expired.
    ///
    /// - Parameter now: Unix seconds.
    static func oldestSignature(at now: Int64) -> Int64 { now - SessionTimes.subscriptionLifetime + 1 }

    // MARK: Monitor entries

    private static let findEntries = Query(
        SessionStorage.subscription, [.id, SessionStorage.name, SessionStorage.signedAt, SessionStorage.sealed],
        where: [.idAmong])

    /// The monitor entries of subscriptions. Missing and unreadable ones are left out.
    ///
    /// - Parameter ids: row ids.
    func monitorEntries(of ids: [SubscriptionID]) -> StoreCommand<[SubscriptionID: MonitorEntry]> {
        .find(Self.findEntries(ids: ids.map(\.rawValue))) { rows in
            var entries: [SubscriptionID: MonitorEntry] = [:]
            entries.reserveCapacity(rows.count)
            for row in rows {
                guard let record = try? open(try row.bytes(3), named: try row.bytes(1), signedAt: try row.integer(2)) else { continue }
                entries[SubscriptionID(rawValue: try row.integer(0))] = record.monitorEntry
            }
            return .done(entries)
        }
    }

    private static let monitoredColumns = [
        .id, SessionStorage.name, SessionStorage.signedAt, SessionStorage.entryByteCount, SessionStorage.sealed,
    ]

    /// - Parameter row: the columns ``monitoredColumns``.
    /// - Returns: nil if the row cannot be decrypted, or has values of other kinds.
    private func monitored(_ row: Row) -> MonitoredSubscription? {
        guard let id = try? row.integer(0), let name = try? row.bytes(1), let signedAt = try? row.integer(2),
            let entryByteCount = try? row.integer(3), let sealed = try? row.bytes(4),
            let plain = try? sealer.open(sealed, in: SessionStorage.subscription, boundTo: Self.binding(name, signedAt)),
            let account = try? SubscriptionRecord.account(in: plain)
        else { return nil }
        return MonitoredSubscription(
            id: SubscriptionID(rawValue: id), account: account, entryByteCount: Int(clamping: entryByteCount))
    }

    private static let findAccounts = Query(
        SessionStorage.subscription, monitoredColumns, where: [.atLeast(.id), .less(.id)], order: [.ascending(.id)])
    // Together, SQLite would read a whole index for them instead of one page for each.
    private static let findFirst = Query(SessionStorage.subscription, [.minimum(.id)])
    private static let findLast = Query(SessionStorage.subscription, [.maximum(.id)])

    /// Divides the row ids into ranges of `size`, and into ranges of equal size if there would be more than 10,000.
    static func ranges(of size: Int64) -> StoreCommand<[Range<Int64>]> {
        .read([findFirst(), findLast()]) { found in
            guard let lowest = try found[0].first?.optionalInteger(0), let highest = try found[1].first?.optionalInteger(0) else {
                return .done([])
            }
            // A damaged row can have any id: those that no database assigns are left out.
            let (first, end) = (max(lowest, 1), highest == .max ? .max : highest + 1)
            guard first < end else { return .done([]) }
            let size = max(size, (end - first - 1) / 10_000 + 1)
            return .done(stride(from: first, to: end, by: Int64.Stride(size)).map { $0..<($0 + min(size, end - $0)) })
        }
    }

    private static let findNamed = Query(
        SessionStorage.subscription, monitoredColumns, where: [.equal(SessionStorage.name), .atLeast(SessionStorage.signedAt)])

    /// Subscriptions with these names (see ``name(of:_:)``), each with a mark that changes with every change of the subscription. Missing,
    /// expired and unreadable ones are left out.
    ///
    /// - Parameters:
    ///   - names: a few hundred at most.
    ///   - now: Unix seconds.
    func named(_ names: [[UInt8]], at now: Int64) -> StoreCommand<[(subscription: MonitoredSubscription, mark: [UInt8])]> {
        .read(names.map { Self.findNamed(.bytes($0), .integer(Self.oldestSignature(at: now))) }) { found in
            .done(
                try found.joined().compactMap { row in
                    // The tag differs after every change, because each sealing has a fresh nonce.
                    try monitored(row).map { ($0, Array(try row.bytes(4).suffix(16))) }
                })
        }
    }

    /// Reads the subscriptions of a range, also those that have expired by a clock that may be wrong and are not removed yet. Rows that cannot be
    /// decrypted are left out. Blocks, as the store's `scan` does.
    ///
    /// - Parameters:
    ///   - range: the range of row ids.
    ///   - visit: called for each.
    func forEachAccount(in store: any Store, _ range: Range<Int64>, _ visit: (MonitoredSubscription) -> Void) throws(StoreError) {
        try store.scan(Self.findAccounts(.integer(range.lowerBound), .integer(range.upperBound))) { row in
            if let subscription = monitored(row) { visit(subscription) }
            return true
        }
    }
}
