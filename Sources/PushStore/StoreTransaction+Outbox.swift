import Foundation
import GRDB
public import StatusProtocol
public import Waku

/// A notification that waits for gorush, with the registration as it is now: an update since then reaches the new token.
public struct OutboxEntry: Sendable {
    public let id: Int64
    public let delivery: DeliveryID
    public let notification: PushNotification
    public let key: RegistrationKey
    /// Of the registration.
    public let version: UInt64
    public let platform: Platform
    public let deviceToken: DeviceToken
    public let apnTopic: String
}

/// Which notification waits, and until when.
public struct WaitingDelivery: Hashable, Sendable {
    public let id: Int64
    public let delivery: DeliveryID
    public let expires: Timestamp

    public init(id: Int64, delivery: DeliveryID, expires: Timestamp) {
        self.id = id
        self.delivery = delivery
        self.expires = expires
    }
}

extension StoreTransaction {
    /// Accepts a notification.
    public func enqueue(
        _ delivery: DeliveryID, _ notification: PushNotification, to stored: StoredRegistration, expires: Timestamp
    ) throws -> WaitingDelivery {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO outbox (delivery, registration, expires_at, sealed)
                VALUES (?, (SELECT id FROM registration WHERE key_hash = ? AND installation = ?), ?, ?)
                """)
        try statement.execute(arguments: [
            Data(delivery.bytes), Data(stored.key.keyHash.bytes), Data(stored.key.installationID.bytes), expires.rawValue,
            Data(rows.seal(notification, for: delivery)),
        ])
        return WaitingDelivery(id: db.lastInsertedRowID, delivery: delivery, expires: expires)
    }

    /// nil when it does not wait.
    public func waiting(_ delivery: DeliveryID) throws -> WaitingDelivery? {
        let statement = try db.cachedStatement(sql: "SELECT id, expires_at FROM outbox WHERE delivery = ?")
        guard let row = try Row.fetchOne(statement, arguments: [Data(delivery.bytes)]) else { return nil }
        return WaitingDelivery(
            id: try row.decode(atIndex: 0), delivery: delivery, expires: Timestamp(rawValue: try row.decode(atIndex: 1)))
    }

    public func wasAccepted(_ delivery: DeliveryID) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT 1 FROM accepted WHERE delivery = ?")
        return try Int.fetchOne(statement, arguments: [Data(delivery.bytes)]) != nil
    }

    public func waitingCount() throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM outbox") ?? 0
    }

    /// All that waits, oldest first.
    public func waitingDeliveries() throws -> [WaitingDelivery] {
        var waiting: [WaitingDelivery] = []
        let rows = try Row.fetchCursor(db, sql: "SELECT id, delivery, expires_at FROM outbox ORDER BY id")
        while let row = try rows.next() {
            guard let delivery = DeliveryID(bytes: try row.bytes(1)) else { continue }
            let expires = Timestamp(rawValue: try row.decode(atIndex: 2))
            waiting.append(WaitingDelivery(id: try row.decode(atIndex: 0), delivery: delivery, expires: expires))
        }
        return waiting
    }

    /// What is to be posted. nil when it is gone: unregistered meanwhile.
    public func outboxEntry(_ id: Int64) throws -> OutboxEntry? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT outbox.delivery, outbox.sealed, registration.key_hash, registration.installation
                FROM outbox JOIN registration ON registration.id = outbox.registration WHERE outbox.id = ?
                """)
        guard let row = try Row.fetchOne(statement, arguments: [id]),
            let delivery = DeliveryID(bytes: try row.bytes(0)), let keyHash = KeyHash(bytes: try row.bytes(2))
        else { return nil }
        let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(3)))
        guard case .registered(let stored) = try state(of: key),
            let notification = try rows.openNotification(try row.bytes(1), of: delivery)
        else { return nil }
        return OutboxEntry(
            id: id, delivery: delivery, notification: notification, key: key, version: stored.version,
            platform: stored.registration.platform ?? .apn, deviceToken: stored.registration.deviceToken,
            apnTopic: stored.registration.apnTopic)
    }

    /// gorush took it: it leaves the outbox, and is known not to be delivered again.
    ///
    /// - Parameter delivery: it is noted even if an unregistration emptied the outbox meanwhile.
    public func accepted(_ id: Int64, _ delivery: DeliveryID, at now: Timestamp) throws {
        let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO accepted (delivery, at) VALUES (?, ?)")
        try statement.execute(arguments: [Data(delivery.bytes), now.rawValue])
        try drop(id)
    }

    /// Given up: expired, or refused by gorush.
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
    }
}
