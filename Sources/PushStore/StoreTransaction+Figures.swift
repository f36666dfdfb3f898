import GRDB
public import StatusProtocol
public import Waku

/// How many installations there are, and how well they are.
public struct RegistrationFigures: Hashable, Sendable {
    public var registered: [Platform: Int] = [:]
    /// Of these, with a token in doubt.
    public var inDoubt: [Platform: Int] = [:]
    public var unregistered = 0
}

extension StoreTransaction {
    /// Reads all registrations: a second for a million.
    public func registrationFigures() throws -> RegistrationFigures {
        var figures = RegistrationFigures()
        for row in try Row.fetchAll(db, sql: "SELECT platform, count(*) FROM registration GROUP BY platform") {
            let count = try row.decode(Int.self, atIndex: 1)
            if let platform = try row.decode(Int32?.self, atIndex: 0).flatMap(Platform.init) {
                figures.registered[platform] = count
            } else {
                figures.unregistered += count
            }
        }
        let doubts = try Row.fetchAll(
            db,
            sql: """
                SELECT platform, count(*) FROM doubt JOIN registration ON registration.id = doubt.registration
                WHERE platform IS NOT NULL GROUP BY platform
                """)
        for row in doubts {
            guard let platform = try row.decode(Int32?.self, atIndex: 0).flatMap(Platform.init) else { continue }
            figures.inDoubt[platform] = try row.decode(Int.self, atIndex: 1)
        }
        return figures
    }

    /// When the notification that waits for longest is too old; nil when none waits.
    public func oldestWaitingExpiry() throws -> Timestamp? {
        try Int64.fetchOne(db, sql: "SELECT expires_at FROM outbox ORDER BY id LIMIT 1").map(Timestamp.init(rawValue:))
    }
}
