/// A column of a ``Table``.
public struct Column: Hashable, Sendable {
    /// The type of a column.
    public enum Kind: Hashable, Sendable {
        case integer, text, bytes
    }

    package let name: String
    package let kind: Kind
    package let isOptional: Bool

    /// A column; its values may be null only if it is optional.
    public init(_ name: String, _ kind: Kind, isOptional: Bool = false) {
        self.name = name
        self.kind = kind
        self.isOptional = isOptional
    }

    /// The primary key of every table, assigned by the store in increasing order.
    public static let id = Column("id", .integer)
}

/// A table declaration, from which each engine generates its own schema.
///
/// Client ids are bytes, since they may contain NUL. Versions are unsigned 64-bit numbers: see ``Row/unsigned(_:)``.
public struct Table: Sendable {
    package let name: String
    /// The columns in addition to ``Column/id``.
    package let columns: [Column]
    /// No two rows have the same values in these columns; a change that would violate this is a conflict.
    package let uniqueColumns: [Column]
    package let indexes: [Index]
    /// Ids of deleted rows are never assigned again.
    package let neverReusesIDs: Bool
    /// Whether several writers may insert the same rows at once. To avoid deadlocks, each writer then makes these inserts in key order before it
    /// changes other rows, in large batches for some hundred commands at a time. A command has at most one such insert, as its first change.
    package let ordersInserts: Bool
    /// The encrypted column; nil when the table has no secrets.
    package let sealed: SealedColumn?

    public init(
        _ name: String, columns: [Column], unique uniqueColumns: [Column] = [], indexes: [Index] = [], neverReusesIDs: Bool = false,
        ordersInserts: Bool = false, sealed: SealedColumn? = nil
    ) {
        self.name = name
        self.columns = columns
        self.uniqueColumns = uniqueColumns
        self.indexes = indexes
        self.neverReusesIDs = neverReusesIDs
        self.ordersInserts = ordersInserts
        self.sealed = sealed
    }
}

/// An index of a table, over all rows or the rows that meet a condition.
public struct Index: Sendable {
    /// The condition for rows to be in a partial index.
    public enum Condition: Sendable {
        case present(Column)
        case equal(Column, Int64)
    }

    package let name: String
    package let columns: [Column]
    package let condition: Condition?

    /// An index of the table that it is declared in.
    public init(_ name: String, on columns: [Column], where condition: Condition? = nil) {
        self.name = name
        self.columns = columns
        self.condition = condition
    }
}

/// A column encrypted by a ``Sealer``. Each ciphertext is bound to values of its row, so that ciphertexts can't be swapped between rows.
public struct SealedColumn: Sendable {
    package enum Binding: Sendable {
        /// Columns of the same row, so that the key alone decrypts it.
        case columns([Column])
        /// A value of this kind that is not stored. Only for caches: rows that can't be decrypted without it can be neither moved nor re-encrypted.
        case unstored(Column.Kind)
    }

    package let column: Column
    package let binding: Binding
    /// The name of such rows in the output of `admin check`.
    package let label: String
    /// Whether each content has some ten KiB at most, so that hundreds may be in memory at once. Others may have 2 MiB.
    package private(set) var isSmall = false

    /// Encrypts the column, with the binding columns as associated data: a value that is moved to another row cannot be decrypted.
    public init(_ column: Column, boundTo binding: [Column], label: String) {
        self.column = column
        self.binding = .columns(binding)
        self.label = label
    }

    /// As ``init(_:boundTo:label:)``, for contents of some ten KiB at most.
    package init(small column: Column, boundTo binding: [Column], label: String) {
        self.init(column, boundTo: binding, label: label)
        isSmall = true
    }

    /// A column of a cache. Where its rows would have to be decrypted, as in a move or a key rotation, they are skipped or deleted, and recomputed
    /// later.
    package init(cached column: Column, boundTo kind: Column.Kind, label: String) {
        self.column = column
        binding = .unstored(kind)
        self.label = label
    }

    /// The columns that ciphertexts are bound to; nil for a cache.
    package var boundColumns: [Column]? {
        if case .columns(let columns) = binding { columns } else { nil }
    }

    /// Integers are bound as 8 bytes, big-endian; texts as UTF-8.
    ///
    /// - Parameter values: the values of ``binding``, in its order.
    /// - Returns: nil when the values are of other kinds, as in a damaged row.
    func associatedData(_ values: [Value]) -> [UInt8]? {
        let kinds =
            switch binding {
            case .columns(let columns): columns.map(\.kind)
            case .unstored(let kind): [kind]
            }
        guard values.count == kinds.count else { return nil }
        var bytes: [UInt8] = []
        for (value, kind) in zip(values, kinds) {
            switch (value, kind) {
            case (.integer(let integer), .integer): withUnsafeBytes(of: integer.bigEndian) { bytes += $0 }
            case (.text(let text), .text): bytes += Array(text.utf8)
            case (.bytes(let part), .bytes): bytes += part
            default: return nil
            }
        }
        return bytes
    }
}
