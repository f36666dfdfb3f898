import Foundation
import GRDB
public import StatusProtocol
import Waku

/// A notification that gorush took, and whom its token belongs to.
public struct PostedNotification: Hashable, Sendable {
    public let delivery: DeliveryID
    /// Names the device.
    public let registration: Int64
    /// Of the registration whose token was posted.
    public let version: UInt64

    public init(delivery: DeliveryID, registration: Int64, version: UInt64) {
        self.delivery = delivery
        self.registration = registration
        self.version = version
    }
}

/// A registration in force, as far as what gorush says of its token needs it.
public struct RegisteredToken: Sendable {
    public let key: RegistrationKey
    public let version: UInt64
    public let platform: Platform
    public let apnTopic: String
    public let deviceToken: DeviceToken
}

extension StoreTransaction {
    /// What was posted under an id: the delivery that begins with these bytes, and those that were posted together with it.
    public func posted(under prefix: [UInt8]) throws -> [PostedNotification] {
        let low = Data(prefix.prefix(DeliveryID.byteCount)) + Data(repeating: 0, count: max(0, DeliveryID.byteCount - prefix.count))
        let high = Data(prefix.prefix(DeliveryID.byteCount)) + Data(repeating: 0xFF, count: max(0, DeliveryID.byteCount - prefix.count))
        let statement = try db.cachedStatement(
            sql: """
                SELECT delivery, registration, version FROM accepted
                WHERE delivery BETWEEN :low AND :high AND posted_as IS NULL AND registration IS NOT NULL
                UNION ALL SELECT delivery, registration, version FROM accepted
                WHERE posted_as BETWEEN :low AND :high AND registration IS NOT NULL
                """)
        var found: [PostedNotification] = []
        for row in try Row.fetchAll(statement, arguments: ["low": low, "high": high]) {
            guard let delivery = DeliveryID(bytes: try row.bytes(0)) else { continue }
            found.append(
                PostedNotification(
                    delivery: delivery, registration: try row.decode(atIndex: 1), version: UInt64(bitPattern: try row.decode(atIndex: 2))))
        }
        return found
    }

    /// Holds a failure against the token that a delivery was posted with. False when one was already: gorush may tell the same twice, in its
    /// reply and by its hook.
    public func noteFailure(of delivery: DeliveryID) throws -> Bool {
        let statement = try db.cachedStatement(sql: "UPDATE accepted SET has_failed = 1 WHERE delivery = ? AND has_failed IS NULL")
        try statement.execute(arguments: [Data(delivery.bytes)])
        return db.changesCount > 0
    }

    /// Whether a failure was held against the token of a delivery already.
    public func hasFailure(of delivery: DeliveryID) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT 1 FROM accepted WHERE delivery = ? AND has_failed IS NOT NULL")
        return try Int.fetchOne(statement, arguments: [Data(delivery.bytes)]) != nil
    }

    /// nil for a tombstone.
    public func registeredToken(_ registration: Int64) throws -> RegisteredToken? {
        let statement = try db.cachedStatement(
            sql: "SELECT key_hash, installation, version, sealed FROM registration WHERE id = ? AND sealed IS NOT NULL")
        guard let row = try Row.fetchOne(statement, arguments: [registration]), let keyHash = KeyHash(bytes: try row.bytes(0)) else {
            return nil
        }
        let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(1)))
        let version = UInt64(bitPattern: try row.decode(atIndex: 2))
        let content = try rows.openRegistration(try row.bytes(3), of: key, version: version)
        return RegisteredToken(
            key: key, version: version, platform: content.platform ?? .apn, apnTopic: content.apnTopic, deviceToken: content.deviceToken)
    }

    // MARK: Doubts

    public func hasDoubts() throws -> Bool {
        try Int.fetchOne(db.cachedStatement(sql: "SELECT 1 FROM doubt LIMIT 1")) != nil
    }

    public func doubt(of registration: Int64) throws -> TokenDoubt? {
        let statement = try db.cachedStatement(
            sql: "SELECT version, failures, first_failure, last_failure, unfailed_since FROM doubt WHERE registration = ?")
        guard let row = try Row.fetchOne(statement, arguments: [registration]) else { return nil }
        return TokenDoubt(
            version: UInt64(bitPattern: try row.decode(atIndex: 0)), failureCount: try row.decode(atIndex: 1),
            firstFailure: Timestamp(rawValue: try row.decode(atIndex: 2)), lastFailure: Timestamp(rawValue: try row.decode(atIndex: 3)),
            unfailedSince: try row.decode(Int64?.self, atIndex: 4).map(Timestamp.init))
    }

    /// - Parameter doubt: nil to forget it.
    public func setDoubt(_ doubt: TokenDoubt?, of registration: Int64) throws {
        guard let doubt else {
            return try db.cachedStatement(sql: "DELETE FROM doubt WHERE registration = ?").execute(arguments: [registration])
        }
        let statement = try db.cachedStatement(sql: "INSERT OR REPLACE INTO doubt VALUES (?, ?, ?, ?, ?, ?)")
        try statement.execute(arguments: [
            registration, Int64(bitPattern: doubt.version), doubt.failureCount, doubt.firstFailure.rawValue, doubt.lastFailure.rawValue,
            doubt.unfailedSince?.rawValue,
        ])
    }

    /// A device that is notified so seldom is not worth a row: it begins anew.
    private static let doubtMemory = Duration.seconds(90 * 24 * 3600)

    /// - Parameter cutoff: to which other memories are pruned.
    func forgetDoubts(from cutoff: Timestamp) throws {
        try db.execute(sql: "DELETE FROM doubt WHERE last_failure < ?", arguments: [(cutoff - Self.doubtMemory).rawValue])
    }
}
