package import Storage

/// A statement with its arguments, `$1` and so on in its text.
package struct Statement {
    /// The type as which an argument is sent.
    enum Kind: Hashable {
        case integer, text, bytes
        /// `bigint[]`
        case integers
        /// `bytea[]`
        case byteStrings
        /// `text[]`
        case texts

        init(_ kind: Column.Kind) {
            self =
                switch kind {
                case .integer: .integer
                case .text: .text
                case .bytes: .bytes
                }
        }

        /// The type's OID in `pg_type`.
        var oid: UInt32 {
            switch self {
            case .integer: 20
            case .text: 25
            case .bytes: 17
            case .integers: 1016
            case .byteStrings: 1001
            case .texts: 1009
            }
        }

        /// The type of arrays of it; nil if it is one.
        fileprivate var array: Kind? {
            switch self {
            case .integer: .integers
            case .text: .texts
            case .bytes: .byteStrings
            case .integers, .byteStrings, .texts: nil
            }
        }
    }

    package enum Argument {
        case integer(Int64)
        case text(String)
        case bytes([UInt8])
        case integers([Int64])
        case byteStrings([[UInt8]])
    }

    let sql: String
    var kinds: [Kind] = []
    var arguments = StatementArguments()
    /// Whether the server should keep it prepared for repeated use.
    var isPrepared = true
    /// Statements of a scope are executed in order, others may be exchanged with them; nil if none may.
    private(set) var scope: String?
    /// How it is grouped with others of the same text; nil if it is not.
    var form: StatementGroups.Form?

    package init(_ sql: String, isPrepared: Bool = true) {
        self.sql = sql
        self.isPrepared = isPrepared
    }

    package init(_ sql: String, _ arguments: [Argument], isPrepared: Bool = true) {
        self.init(sql, isPrepared: isPrepared)
        for argument in arguments {
            switch argument {
            case .integer(let integer):
                self.arguments.add { bytes in withUnsafeBytes(of: integer.bigEndian) { bytes.append(contentsOf: $0) } }
                kinds.append(.integer)
            case .text(let text):
                self.arguments.add { $0.append(contentsOf: text.utf8) }
                kinds.append(.text)
            case .bytes(let part):
                self.arguments.add { $0.append(contentsOf: part) }
                kinds.append(.bytes)
            case .integers(let integers): add(integers)
            case .byteStrings(let byteStrings): add(byteStrings)
            }
        }
    }

    /// Lets ``StatementGroups`` move it.
    ///
    /// - Parameter form: nil if its text has only one form.
    mutating func mayMove(in scope: String, as form: StatementGroups.Form?) {
        self.scope = scope
        self.form = !kinds.isEmpty && kinds.allSatisfy { $0.array != nil } ? form : nil
    }

    /// - Throws: ``Storage/UnexpectedValue`` for a value of another kind.
    mutating func add(_ value: Value, as kind: Kind) throws(UnexpectedValue) {
        switch (value, kind) {
        case (.null, _): arguments.addNull()
        case (.integer(let integer), .integer):
            arguments.add { bytes in withUnsafeBytes(of: integer.bigEndian) { bytes.append(contentsOf: $0) } }
        case (.text(let text), .text): arguments.add { $0.append(contentsOf: text.utf8) }
        case (.bytes(let bytes), .bytes): arguments.add { $0.append(contentsOf: bytes) }
        default: throw UnexpectedValue()
        }
        kinds.append(kind)
    }

    mutating func add(_ integers: [Int64]) {
        add(arrayOf: .integer, count: integers.count) { index, bytes in
            Self.append(8, to: &bytes)
            withUnsafeBytes(of: integers[index].bigEndian) { bytes.append(contentsOf: $0) }
        }
    }

    mutating func add(_ byteStrings: [[UInt8]]) {
        add(arrayOf: .bytes, count: byteStrings.count) { index, bytes in
            Self.append(Int32(byteStrings[index].count), to: &bytes)
            bytes.append(contentsOf: byteStrings[index])
        }
    }

    /// Adds an array with the argument at this position of each statement.
    mutating func add(argument position: Int, of statements: [Statement]) {
        add(arrayOf: statements[0].kinds[position], count: statements.count) { index, bytes in
            if index == 0 { bytes.reserveCapacity(bytes.count + statements.reduce(0) { $0 + 4 + $1.arguments.byteCount(position) }) }
            statements[index].arguments.appendElement(position, to: &bytes)
        }
    }

    /// An array of one dimension: its count, whether it has nulls, the type of its elements, their count, the lowest index, then each with its
    /// length, which is -1 for null. 4 bytes each, big-endian.
    private mutating func add(arrayOf kind: Kind, count: Int, append: (_ index: Int, inout [UInt8]) -> Void) {
        guard let array = kind.array else { return }
        arguments.add { bytes in
            // The server looks for nulls itself.
            for word in [1, 1, Int32(kind.oid), Int32(count), 1] { Self.append(word, to: &bytes) }
            for index in 0..<count { append(index, &bytes) }
        }
        kinds.append(array)
    }

    fileprivate static func append(_ word: Int32, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
    }
}

/// Values in PostgreSQL's binary format, as libpq wants them.
struct StatementArguments {
    private var bytes: [UInt8] = []
    /// The offset of each value; nil for null.
    private var starts: [Int?] = []
    private var counts: [Int32] = []

    mutating func addNull() {
        starts.append(nil)
        counts.append(0)
    }

    mutating func add(_ append: (inout [UInt8]) -> Void) {
        let start = bytes.count
        append(&bytes)
        starts.append(start)
        counts.append(Int32(bytes.count - start))
    }

    func byteCount(_ index: Int) -> Int { Int(counts[index]) }

    /// Appends a value as an element of an array.
    func appendElement(_ index: Int, to array: inout [UInt8]) {
        guard let start = starts[index] else { return Statement.append(-1, to: &array) }
        Statement.append(counts[index], to: &array)
        array.append(contentsOf: bytes[start..<start + Int(counts[index])])
    }

    /// - Parameter body: receives the number of values, and their addresses, lengths and formats.
    func withPointers<Result>(
        _ body: (Int32, [UnsafePointer<CChar>?], [Int32], [Int32]) -> Result
    ) -> Result {
        // Empty values need an address too: a null address would mean NULL.
        var bytes = bytes
        bytes.append(0)
        return bytes.withUnsafeBytes { buffer in
            let base = buffer.bindMemory(to: CChar.self).baseAddress
            return body(
                Int32(starts.count), starts.map { start in start.flatMap { base?.advanced(by: $0) } }, counts,
                Array(repeating: 1, count: starts.count))
        }
    }
}

/// The result of a statement.
package struct StatementResult {
    package internal(set) var rows: [Row] = []
    /// The number of changed rows.
    package internal(set) var changedCount = 0
    /// The command tag, such as `COMMIT`.
    package internal(set) var tag = ""
}
