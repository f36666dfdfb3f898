import Foundation
import GRDB
import StatusProtocol

extension SealedRows {
    /// Opens every registration, or the first ones. `visit` gets what went wrong with each; nil when nothing did.
    func openRegistrations(in db: Database, limit: Int? = nil, _ visit: ((any Error)?) throws -> Void) throws {
        let found = try Row.fetchCursor(
            db,
            sql: "SELECT key_hash, installation, version, sealed, changed_at FROM registration WHERE sealed IS NOT NULL LIMIT ?",
            arguments: [limit ?? -1])
        // A copy tells integers from texts; a row that is still in the statement converts them.
        while let row = try found.next()?.copy() {
            try visit(Self.failure { try openRegistration(row) })
        }
    }

    private func openRegistration(_ row: Row) throws {
        guard let keyHash = KeyHash(bytes: try row.bytes(0)) else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
        let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(1)))
        let version = UInt64(bitPattern: try row.decode(atIndex: 2))
        _ = try row.decode(Int64.self, atIndex: 4)
        _ = try openRegistration(try row.bytes(3), of: key, version: version)
    }

    /// Opens every notification that waits, as ``openRegistrations(in:_:)`` does.
    func openNotifications(in db: Database, _ visit: ((any Error)?) throws -> Void) throws {
        let found = try Row.fetchCursor(db, sql: "SELECT delivery, sealed FROM outbox")
        while let row = try found.next()?.copy() {
            try visit(
                Self.failure {
                    guard let delivery = DeliveryID(bytes: try row.bytes(0)) else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
                    _ = try openNotification(try row.bytes(1), of: delivery)
                })
        }
    }

    private static func failure(_ body: () throws -> Void) -> (any Error)? {
        do {
            try body()
            return nil
        } catch {
            return error
        }
    }
}
