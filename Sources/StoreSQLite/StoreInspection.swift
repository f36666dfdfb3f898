import GRDB
package import Storage
package import WakuCrypto

/// What a thorough look at a database file found.
package struct StoreInspection: Codable, Hashable, Sendable {
    package struct Rows: Codable, Hashable, Sendable {
        package var count = 0
        /// Of these, with the node's key.
        package var unreadable = 0

        package init(count: Int = 0, unreadable: Int = 0) {
            self.count = count
            self.unreadable = unreadable
        }

        mutating func add(_ failure: (any Error)?) {
            count += 1
            if failure != nil { unreadable += 1 }
        }
    }

    /// As SQLite tells of them; at most ``problemLimit``.
    package var problems: [String] = []
    /// Those with encrypted contents, by the labels of their tables: `registrations`, `notifications`. nil when they were not opened.
    package var rows: [String: Rows]?
    /// A rotation of the storage key was interrupted after the rows had their new key: free pages may still hold what the old key opens.
    package var isRotationUnfinished = false

    package init(problems: [String] = [], rows: [String: Rows]? = nil, isRotationUnfinished: Bool = false) {
        self.problems = problems
        self.rows = rows
        self.isRotationUnfinished = isRotationUnfinished
    }

    package static let problemLimit = 20
    package static let sampleSize = 10_000

    package var isWhole: Bool { problems.isEmpty && unreadableCount == 0 }

    /// Rows that can't be opened with the node's key.
    package var unreadableCount: Int { rows?.values.reduce(0) { $0 + $1.unreadable } ?? 0 }

    /// Reads all of a database file, by a connection of its own, beside a running daemon or without one.
    ///
    /// - Parameters:
    ///   - path: the database.
    ///   - storageKey: nil to leave sealed rows unopened.
    ///   - parts: all that have tables in it.
    ///   - isThorough: false for a quicker look, without the indexes and with no more than ``sampleSize`` rows of each table.
    /// - Throws: `StoreError` when it is no database of this program, a newer one, or sealed with another key.
    package init(of path: String, storageKey: SymmetricKey?, parts: [StorePart], isThorough: Bool = true) throws(StoreError) {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(2)
            let database = try DatabaseQueue(path: path, configuration: configuration)
            self = try database.read {
                try Self(db: $0, storageKey: storageKey, path, schema: Schema(parts: parts), isThorough: isThorough)
            }
            try database.close()
        } catch {
            throw StoreError(explaining: error, in: path)
        }
    }

    init(db: Database, storageKey: SymmetricKey?, _ path: String, schema: Schema, isThorough: Bool = true) throws {
        guard try !schema.isNewer(db) else { throw StoreError(newerIn: path) }
        guard try schema.isKnown(db) else {
            throw StoreError(code: .damaged, message: "\(path) is no database of waku-push: give one that admin backup made")
        }
        let check = isThorough ? "integrity_check" : "quick_check"
        problems = try String.fetchAll(db, sql: "PRAGMA \(check)(\(Self.problemLimit))").filter { $0 != "ok" }
        isRotationUnfinished = try StorageKeyRotation.isUnfinished(in: db)
        guard let storageKey else { return }
        let sealer = try Sealer(storageKey: storageKey, in: db)
        guard try sealer.fits(db) != false else { throw StoreError(otherIdentityIn: path) }
        var found: [String: Rows] = [:]
        for (table, sealed) in schema.sealedTables where !sealed.isCache {
            try sealer.openAll(of: table, sealed, in: db, limit: isThorough ? nil : Self.sampleSize) { failure in
                found[sealed.label, default: Rows()].add(failure)
            }
            found[sealed.label, default: Rows()].count += 0
        }
        rows = found
    }

    // MARK: JSON

    /// `problems`, `isRotationUnfinished`, and a key for each label of ``rows``.
    private struct Key: CodingKey, Hashable {
        static let problems = Key(stringValue: "problems")
        static let isRotationUnfinished = Key(stringValue: "isRotationUnfinished")

        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        problems = try container.decode([String].self, forKey: .problems)
        isRotationUnfinished = try container.decode(Bool.self, forKey: .isRotationUnfinished)
        let labels = container.allKeys.filter { $0 != .problems && $0 != .isRotationUnfinished }
        if !labels.isEmpty {
            rows = Dictionary(uniqueKeysWithValues: try labels.map { ($0.stringValue, try container.decode(Rows.self, forKey: $0)) })
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(problems, forKey: .problems)
        try container.encode(isRotationUnfinished, forKey: .isRotationUnfinished)
        for (label, rows) in rows ?? [:] { try container.encode(rows, forKey: Key(stringValue: label)) }
    }
}
