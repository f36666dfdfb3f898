import Delivery
import Core
package import SessionProtocol
import SessionSwarms
package import Storage

/// What can be asked of the stored subscriptions, and done to them.
package struct Subscriptions: Sendable {
    let sealer: Sealer
    /// Whether other nodes use the store. Then deliveries are noted among ``SessionStorage/seen`` as soon as they are in the outbox.
    let isShared: Bool

    /// - Parameters:
    ///   - sealer: of the store.
    ///   - isShared: whether other nodes use the store. Those of earlier releases know a delivery only by its row in ``SessionStorage/seen``.
    package init(_ sealer: Sealer, isShared: Bool = false) {
        self.sealer = sealer
        self.isShared = isShared
    }

    static func device(_ row: Int64) -> DeviceID { DeviceID(SessionStorage.protocolNumber, row: row) }

    // MARK: Names

    /// What names a subscription: a keyed hash of `pubkey(33) ‖ service ‖ 0 ‖ token`.
    package func name(of account: AccountID, _ device: SubscriberDevice) -> [UInt8] {
        hash(account.bytes + Array(device.service.rawValue.utf8) + [0] + Array(device.token.value.utf8), "session_subscription")
    }

    /// Keyed hash of `pubkey(33)`.
    package func accountHash(_ account: AccountID) -> [UInt8] { hash(account.bytes, "session_account") }

    /// Keyed hash of `service ‖ 0 ‖ token`.
    func tokenHash(_ device: SubscriberDevice) -> [UInt8] {
        hash(Array(device.service.rawValue.utf8) + [0] + Array(device.token.value.utf8), "session_token")
    }

    private func hash(_ bytes: [UInt8], _ table: String) -> [UInt8] {
        sealer.lookUpHash(of: bytes, in: table)
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

    // MARK: Which count

    /// Subscriptions that were signed before this count no more.
    ///
    /// - Parameter now: Unix seconds.
    static func oldestSignature(at now: Int64) -> Int64 { now - SessionTimes.subscriptionLifetime + 1 }

    // MARK: For storage servers

    private static let findEntries = Query(
        SessionStorage.subscription, [.id, SessionStorage.name, SessionStorage.signedAt, SessionStorage.sealed],
        where: [.idAmong, .atLeast(SessionStorage.signedAt)])

    /// What storage servers are asked about these subscriptions. Those that are gone, expired or unreadable are left out.
    ///
    /// - Parameters:
    ///   - ids: rows.
    ///   - now: Unix seconds.
    func monitorEntries(of ids: [SubscriptionID], at now: Int64) -> StoreCommand<[SubscriptionID: MonitorEntry]> {
        .find(Self.findEntries(.integer(Self.oldestSignature(at: now)), ids: ids.map(\.rawValue))) { rows in
            var entries: [SubscriptionID: MonitorEntry] = [:]
            entries.reserveCapacity(rows.count)
            for row in rows {
                guard let record = try? open(try row.bytes(3), named: try row.bytes(1), signedAt: try row.integer(2)) else { continue }
                entries[SubscriptionID(rawValue: try row.integer(0))] = record.monitorEntry
            }
            return .done(entries)
        }
    }

    private static let findAccounts = Query(
        SessionStorage.subscription,
        [.id, SessionStorage.name, SessionStorage.signedAt, SessionStorage.entryByteCount, SessionStorage.sealed],
        where: [.atLeast(.id), .less(.id)], order: [.ascending(.id)])
    private static let findRange = Query(SessionStorage.subscription, [.minimum(.id), .maximum(.id)])

    /// The rows' ids, as at most `count` ranges of about the same size.
    static func ranges(_ count: Int) -> StoreCommand<[Range<Int64>]> {
        .find(findRange()) { rows in
            guard let row = rows.first, let first = try row.optionalInteger(0), let last = try row.optionalInteger(1), first > 0,
                first <= last, last < .max
            else { return .done([]) }
            let size = (last - first) / Int64(max(count, 1)) + 1
            return .done(stride(from: first, through: last, by: Int64.Stride(size)).map { $0..<min($0 + size, last + 1) })
        }
    }

    private static let findNamed = Query(
        SessionStorage.subscription,
        [.id, SessionStorage.name, SessionStorage.signedAt, SessionStorage.entryByteCount, SessionStorage.sealed],
        where: [.equal(SessionStorage.name), .atLeast(SessionStorage.signedAt)])

    /// Subscriptions by their ``name(of:_:)``, each with a mark that differs after every change. Those that are gone, expired or unreadable are left out.
    ///
    /// - Parameters:
    ///   - names: no more than some hundreds.
    ///   - now: Unix seconds.
    func named(_ names: [[UInt8]], at now: Int64) -> StoreCommand<[(subscription: MonitoredSubscription, mark: [UInt8])]> {
        .read(names.map { Self.findNamed(.bytes($0), .integer(Self.oldestSignature(at: now))) }) { found in
            .done(
                try found.joined().compactMap { row in
                    let signedAt = try row.integer(2)
                    let (sealed, binding) = (try row.bytes(4), Self.binding(try row.bytes(1), signedAt))
                    guard let plain = try? sealer.open(sealed, in: SessionStorage.subscription, boundTo: binding),
                        let account = try? SubscriptionRecord.account(in: plain)
                    else { return nil }
                    let id = SubscriptionID(rawValue: try row.integer(0))
                    // Every sealing has a nonce and so a tag of its own.
                    return (
                        MonitoredSubscription(id: id, account: account, entryByteCount: Int(clamping: try row.integer(3))),
                        Array(sealed.suffix(16))
                    )
                })
        }
    }

    /// Hands over the subscriptions of a range that count at present. One that cannot be opened is left out. Blocks as the store's `scan` does.
    ///
    /// - Parameters:
    ///   - store: to read.
    ///   - range: of ids.
    ///   - now: Unix seconds.
    ///   - visit: gets id, account and bytes of the entry.
    /// - Throws: `StoreError`
    func forEachAccount(
        in store: any Store, _ range: Range<Int64>, at now: Int64, _ visit: (SubscriptionID, AccountID, Int) -> Void
    ) throws(StoreError) {
        let oldest = Self.oldestSignature(at: now)
        try store.scan(Self.findAccounts(.integer(range.lowerBound), .integer(range.upperBound))) { row in
            let signedAt = try row.integer(2)
            guard signedAt >= oldest else { return true }
            let binding = Self.binding(try row.bytes(1), signedAt)
            guard let plain = try? sealer.open(try row.bytes(4), in: SessionStorage.subscription, boundTo: binding),
                let account = try? SubscriptionRecord.account(in: plain)
            else { return true }
            visit(SubscriptionID(rawValue: try row.integer(0)), account, Int(clamping: try row.integer(3)))
            return true
        }
    }
}
