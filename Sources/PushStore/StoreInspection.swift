import GRDB
public import WakuCrypto

/// What a thorough look at a database file found.
public struct StoreInspection: Codable, Hashable, Sendable {
    public struct Rows: Codable, Hashable, Sendable {
        public var count = 0
        /// Of these, with the node's key.
        public var unreadable = 0

        public init(count: Int = 0, unreadable: Int = 0) {
            self.count = count
            self.unreadable = unreadable
        }

        mutating func add(_ failure: (any Error)?) {
            count += 1
            if failure != nil { unreadable += 1 }
        }
    }

    /// As SQLite tells of them; at most ``problemLimit``.
    public var problems: [String] = []
    /// nil when they were not opened.
    public var registrations: Rows?
    public var notifications: Rows?
    /// A rotation of the storage key was interrupted after the rows had their new key: free pages may still hold what the old key opens.
    public var isRotationUnfinished = false

    public init(
        problems: [String] = [], registrations: Rows? = nil, notifications: Rows? = nil, isRotationUnfinished: Bool = false
    ) {
        self.problems = problems
        self.registrations = registrations
        self.notifications = notifications
        self.isRotationUnfinished = isRotationUnfinished
    }

    public static let problemLimit = 20
    public static let sampleSize = 10_000

    public var isWhole: Bool {
        problems.isEmpty && (registrations?.unreadable ?? 0) == 0 && (notifications?.unreadable ?? 0) == 0
    }

    /// Reads all of a database file, by a connection of its own, beside a running daemon or without one.
    ///
    /// - Parameters:
    ///   - storageKey: nil to leave sealed rows unopened.
    ///   - isThorough: false for a quicker look, without the indexes and with no more than ``sampleSize`` registrations.
    /// - Throws: ``StoreError`` when it is no database of this program, a newer one, or sealed with another key.
    public init(of path: String, storageKey: SymmetricKey?, isThorough: Bool = true) throws(StoreError) {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(2)
            let database = try DatabaseQueue(path: path, configuration: configuration)
            self = try database.read { try Self(db: $0, storageKey: storageKey, path, isThorough: isThorough) }
            try database.close()
        } catch {
            throw StoreError(explaining: error, in: path)
        }
    }

    init(db: Database, storageKey: SymmetricKey?, _ path: String, isThorough: Bool = true) throws {
        guard try !Schema.migrator.hasBeenSuperseded(db) else { throw StoreError(newerIn: path) }
        guard try !Schema.migrator.appliedIdentifiers(db).isEmpty else {
            throw StoreError(code: .damaged, message: "\(path) is no database of waku-push: give one that admin backup made")
        }
        let check = isThorough ? "integrity_check" : "quick_check"
        problems = try String.fetchAll(db, sql: "PRAGMA \(check)(\(Self.problemLimit))").filter { $0 != "ok" }
        isRotationUnfinished = try StorageKeyRotation.isUnfinished(in: db)
        guard let storageKey else { return }
        let rows = try SealedRows(storageKey: storageKey, in: db)
        guard try rows.fit(db) != false else { throw StoreError(otherIdentityIn: path) }
        var (registrations, notifications) = (Rows(), Rows())
        try rows.openRegistrations(in: db, limit: isThorough ? nil : Self.sampleSize) { registrations.add($0) }
        try rows.openNotifications(in: db) { notifications.add($0) }
        (self.registrations, self.notifications) = (registrations, notifications)
    }
}
