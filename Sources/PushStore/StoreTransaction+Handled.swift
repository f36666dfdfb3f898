import Foundation
import GRDB
public import Waku

/// Messages that were handled to their end lately: what a relay's store tells of them again after a restart is not handled again.
extension StoreTransaction {
    private static let handledByteLimit = 6 << 20
    private static let hashByteCount = 32

    public func remember(handled hashes: [MessageHash], at now: Timestamp) throws {
        guard !hashes.isEmpty else { return }
        let statement = try db.cachedStatement(sql: "INSERT INTO handled (at, hashes) VALUES (?, ?)")
        try statement.execute(arguments: [now.rawValue, Data(hashes.flatMap(\.bytes))])
    }

    /// Forgets what was remembered before `cutoff`, and the oldest beyond 6 MiB.
    public func forgetHandled(before cutoff: Timestamp) throws {
        try db.execute(
            sql: """
                DELETE FROM handled WHERE at < :cutoff OR id IN (
                    SELECT id FROM (SELECT id, sum(length(hashes)) OVER (ORDER BY id DESC) AS bytes FROM handled) WHERE bytes > :limit)
                """, arguments: ["cutoff": cutoff.rawValue, "limit": Self.handledByteLimit])
    }

    public func handledMessages() throws -> [MessageHash] {
        let blobs = try Data.fetchCursor(db, sql: "SELECT hashes FROM handled ORDER BY id")
        var hashes: [MessageHash] = []
        while let blob = try blobs.next() {
            let bytes = Array(blob)
            for start in stride(from: 0, through: bytes.count - Self.hashByteCount, by: Self.hashByteCount) {
                hashes.append(MessageHash(bytes: Array(bytes[start..<start + Self.hashByteCount])))
            }
        }
        return hashes
    }
}
