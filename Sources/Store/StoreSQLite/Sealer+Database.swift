import GRDB
import Storage
import WakuCrypto

extension Sealer {
    /// The sealer with the salt that the database stores.
    init(storageKey: SymmetricKey, in db: Database) throws {
        self = try StoreSession(db: db).perform(Sealer.stored(under: storageKey))
    }

    /// Whether the database is sealed with this key; nil when it stores no check.
    func fits(_ db: Database) throws -> Bool? {
        try StoreSession(db: db).perform(Properties.property(Self.checkProperty)).map(opensCheck)
    }

    /// Opens the sealed rows of a table, up to `limit`. `visit` receives the error for each row; nil when the row could be opened.
    ///
    /// A database of an older version, or a backup of one, may lack the table or some of its columns.
    func openAll(_ sealed: SealedRows, in db: Database, limit: Int? = nil, _ visit: ((any Error)?) throws -> Void) throws {
        guard try db.tableExists(sealed.table.name) else { return }
        let present = Set(try db.columns(in: sealed.table.name).map(\.name))
        let columns = sealed.table.columns.filter { present.contains($0.name) }
        try StoreSession(db: db).scan(sealed.contents(and: columns)(limit: limit)) { row in
            do {
                let values = row.values.dropFirst(sealed.boundColumns.count + 1)
                guard zip(columns, values).allSatisfy({ $0.admits($1) }) else { throw UnexpectedValue() }
                _ = try sealed.open(row, by: self)
            } catch let error as DatabaseError {
                throw error
            } catch {
                try visit(error)
                return true
            }
            try visit(nil)
            return true
        }
    }
}

extension Column {
    /// SQLite keeps a value of any type in any column.
    fileprivate func admits(_ value: Value) -> Bool {
        switch (value, kind) {
        case (.null, _): isOptional
        case (.integer, .integer), (.text, .text), (.bytes, .bytes): true
        default: false
        }
    }
}
