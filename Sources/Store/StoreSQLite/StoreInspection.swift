import GRDB
package import Storage
package import WakuCrypto

extension StoreInspection {
    /// Reads a whole database file on its own connection, whether a daemon is running or not.
    ///
    /// - Parameters:
    ///   - storageKey: nil to leave sealed rows unopened.
    ///   - parts: all parts that have tables in the database.
    ///   - isThorough: false for a quick check without the indexes and of at most ``sampleSize`` rows per table.
    /// - Throws: `StoreError` when the file is missing, no database of this program, of a newer version, or sealed with another key.
    package init(of path: String, storageKey: SymmetricKey?, parts: [StorePart], isThorough: Bool = true) throws(StoreError) {
        guard try DatabaseFile.exists(at: path) else { throw StoreError(noDatabaseAt: path) }
        do {
            var configuration = Configuration.untrusted
            configuration.readonly = true
            configuration.busyMode = .timeout(2)
            let name = DatabaseFile.isReadOnly(path) ? DatabaseFile.readOnlyName(of: path) : path
            let database = try DatabaseQueue(path: name, configuration: configuration)
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
        try SchemaCheck(schema).verify(db, in: path)
        let check = isThorough ? "integrity_check" : "quick_check"
        self.init()
        problems = try String.fetchAll(db, sql: "PRAGMA \(check)(\(Self.problemLimit))").filter { $0 != "ok" }
        isRotationUnfinished = try StoreSession(db: db).perform(Properties.property(Sealer.unfinishedRotationProperty)) != nil
        guard let storageKey else { return }
        let sealer = try Sealer(storageKey: storageKey, in: db)
        guard try sealer.fits(db) != false else { throw StoreError(otherIdentityIn: path) }
        var found: [String: Rows] = [:]
        for sealed in schema.parts.sealedRows {
            found[sealed.label] = found[sealed.label] ?? Rows()
            try sealer.openAll(sealed, in: db, limit: isThorough ? nil : Self.sampleSize) { failure in
                found[sealed.label]?.add(failure)
            }
        }
        rows = found
    }
}
