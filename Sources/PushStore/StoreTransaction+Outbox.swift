import Foundation
import GRDB
public import StatusProtocol
public import Waku

/// A notification that waits for gorush, with the registration as it is now: an update since then reaches the new token.
public struct OutboxEntry: Sendable {
    public let id: Int64
    public let delivery: DeliveryID
    public let notification: PushNotification
    /// Names the device: its row, which stays when it registers anew.
    public let registration: Int64
    public let key: RegistrationKey
    /// Of the registration.
    public let version: UInt64
    public let platform: Platform
    public let deviceToken: DeviceToken
    public let apnTopic: String
}

extension OutboxEntry {
    /// As it was when it was put there.
    public init(_ waiting: WaitingDelivery, _ notification: PushNotification, to stored: StoredRegistration) {
        let registration = stored.registration
        self.init(
            id: waiting.id, delivery: waiting.delivery, notification: notification, registration: waiting.registration, key: stored.key,
            version: registration.version, platform: registration.platform ?? .apn, deviceToken: registration.deviceToken,
            apnTopic: registration.apnTopic)
    }
}

/// What the outbox has under an id.
public enum StoredOutboxEntry: Sendable {
    case entry(OutboxEntry)
    /// The device was unregistered meanwhile.
    case unregistered
    /// The row was altered, or is of a version that this one does not know.
    case unreadable
}

/// Which notification waits, for which device, and until when.
public struct WaitingDelivery: Hashable, Sendable {
    /// Of the outbox' row: later ones are higher.
    public let id: Int64
    public let delivery: DeliveryID
    /// Names the device.
    public let registration: Int64
    public let expires: Timestamp

    public init(id: Int64, delivery: DeliveryID, registration: Int64, expires: Timestamp) {
        self.id = id
        self.delivery = delivery
        self.registration = registration
        self.expires = expires
    }
}

extension StoreTransaction {
    /// Accepts a notification.
    public func enqueue(
        _ delivery: DeliveryID, _ notification: PushNotification, to stored: StoredRegistration, expires: Timestamp
    ) throws -> WaitingDelivery {
        let statement = try HotStatement(
            """
            INSERT INTO outbox (delivery, registration, expires_at, sealed)
            VALUES (?, (SELECT id FROM registration WHERE key_hash = ? AND installation = ?), ?, ?)
            RETURNING registration
            """, db)
        statement.bind(1, delivery.bytes)
        statement.bind(2, stored.key.keyHash.bytes)
        statement.bind(3, stored.key.installationID.bytes)
        statement.bind(4, expires.rawValue)
        statement.bind(5, rows.seal(notification, for: delivery))
        guard try statement.next() else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
        let registration = try statement.integer(0)
        try statement.run()
        return WaitingDelivery(id: db.lastInsertedRowID, delivery: delivery, registration: registration, expires: expires)
    }

    /// nil when it does not wait.
    public func waiting(_ delivery: DeliveryID) throws -> WaitingDelivery? {
        let statement = try db.cachedStatement(sql: "SELECT id, registration, expires_at FROM outbox WHERE delivery = ?")
        guard let row = try Row.fetchOne(statement, arguments: [Data(delivery.bytes)]) else { return nil }
        return WaitingDelivery(
            id: try row.decode(atIndex: 0), delivery: delivery, registration: try row.decode(atIndex: 1),
            expires: Timestamp(rawValue: try row.decode(atIndex: 2)))
    }

    /// Whether gorush took it; false while it waits for that, nil when it is not known.
    public func acceptance(of delivery: DeliveryID) throws -> Bool? {
        let statement = try HotStatement(
            "SELECT 1 FROM accepted WHERE delivery = ?1 UNION ALL SELECT 0 FROM outbox WHERE delivery = ?1", db)
        statement.bind(1, delivery.bytes)
        return try statement.next() ? try statement.integer(0) == 1 : nil
    }

    public func wasAccepted(_ delivery: DeliveryID) throws -> Bool {
        try acceptance(of: delivery) == true
    }

    /// Whether what waits is still to be posted as it was when it was read: the device has neither registered anew nor been unregistered.
    public func isCurrent(_ entry: OutboxEntry) throws -> Bool {
        let statement = try HotStatement("SELECT version FROM registration WHERE id = ? AND sealed IS NOT NULL", db)
        statement.bind(1, entry.registration)
        return try statement.next() && statement.integer(0) == Int64(bitPattern: entry.version)
    }

    public func waitingCount() throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM outbox") ?? 0
    }

    /// When the first notification is given up; nil when none waits.
    public func firstExpiry() throws -> Timestamp? {
        try Int64.fetchOne(db, sql: "SELECT min(expires_at) FROM outbox").map(Timestamp.init)
    }

    /// All that waits, oldest first.
    public func waitingDeliveries() throws -> [WaitingDelivery] {
        var found: [WaitingDelivery] = []
        let rows = try Row.fetchCursor(db, sql: "SELECT id, delivery, registration, expires_at FROM outbox ORDER BY id")
        while let row = try rows.next() {
            guard let delivery = DeliveryID(bytes: try row.bytes(1)) else { continue }
            found.append(
                WaitingDelivery(
                    id: try row.decode(atIndex: 0), delivery: delivery, registration: try row.decode(atIndex: 2),
                    expires: Timestamp(rawValue: try row.decode(atIndex: 3))))
        }
        return found
    }

    /// What is to be posted, by its id; what is not in the outbox is left out. One that can't be opened takes no other with it.
    public func outboxEntries(_ ids: [Int64]) throws -> [Int64: StoredOutboxEntry] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT outbox.id, outbox.delivery, outbox.sealed, registration.id, key_hash, installation, version, registration.sealed
                FROM outbox LEFT JOIN registration ON registration.id = outbox.registration
                WHERE outbox.id IN (SELECT value FROM json_each(?))
                """)
        var found: [Int64: StoredOutboxEntry] = [:]
        let rows = try Row.fetchCursor(statement, arguments: ["[" + ids.map(String.init).joined(separator: ",") + "]"])
        while let row = try rows.next() { found[try row.decode(atIndex: 0)] = (try? storedEntry(row)) ?? .unreadable }
        return found
    }

    private func storedEntry(_ row: Row) throws -> StoredOutboxEntry {
        guard let sealed = try row.decode(Data?.self, atIndex: 7) else { return .unregistered }
        guard let delivery = DeliveryID(bytes: try row.bytes(1)), let keyHash = KeyHash(bytes: try row.bytes(4)) else {
            return .unreadable
        }
        let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(5)))
        let version = UInt64(bitPattern: try row.decode(atIndex: 6))
        let registration = try rows.openRegistration(Array(sealed), of: key, version: version)
        guard let notification = try rows.openNotification(try row.bytes(2), of: delivery) else { return .unreadable }
        return .entry(
            OutboxEntry(
                id: try row.decode(atIndex: 0), delivery: delivery, notification: notification, registration: try row.decode(atIndex: 3),
                key: key, version: version, platform: registration.platform ?? .apn, deviceToken: registration.deviceToken,
                apnTopic: registration.apnTopic))
    }

    /// gorush took it: it leaves the outbox, and is known not to be delivered again.
    ///
    /// - Parameters:
    ///   - delivery: it is noted even if an unregistration emptied the outbox meanwhile.
    ///   - registration: the device, and the version of the registration whose token was posted.
    ///   - shared: the delivery under whose id it was posted, if not under its own.
    public func accepted(
        _ delivery: DeliveryID, registration: (id: Int64, version: UInt64)? = nil, postedAs shared: DeliveryID? = nil,
        at now: Timestamp
    ) throws {
        let statement = try HotStatement(
            "INSERT OR IGNORE INTO accepted (delivery, at, registration, version, posted_as) VALUES (?, ?, ?, ?, ?)", db)
        statement.bind(1, delivery.bytes)
        statement.bind(2, now.rawValue)
        statement.bind(3, registration?.id)
        statement.bind(4, registration.map { Int64(bitPattern: $0.version) })
        if let shared { statement.bind(5, shared.bytes) }
        try statement.run()
        // By its name: the row may be another one by now, if the device was unregistered and registered anew while this was on its way.
        let delete = try HotStatement("DELETE FROM outbox WHERE delivery = ?", db)
        delete.bind(1, delivery.bytes)
        try delete.run()
    }

    /// Given up: expired, evicted, or refused by gorush.
    public func drop(_ id: Int64) throws {
        try db.cachedStatement(sql: "DELETE FROM outbox WHERE id = ?").execute(arguments: [id])
    }

    /// Forgets deliveries and answers from before `cutoff`, and the oldest beyond `limit` of each.
    public func prune(before cutoff: Timestamp, keeping limit: Int) throws {
        for table in ["accepted", "answer"] {
            // Rows stand in the order of time, but for a clock that was set back: so none is deleted past the first that stays.
            try db.execute(
                sql: """
                    DELETE FROM \(table) WHERE id < coalesce(
                        (SELECT id FROM \(table) WHERE at >= ? ORDER BY id LIMIT 1), (SELECT max(id) + 1 FROM \(table)))
                    """, arguments: [cutoff.rawValue])
            try db.execute(sql: "DELETE FROM \(table) WHERE id <= (SELECT max(id) FROM \(table)) - ?", arguments: [limit])
        }
        try forgetDoubts(from: cutoff)
    }
}
