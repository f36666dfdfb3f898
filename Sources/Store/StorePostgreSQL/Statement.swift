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
        add(integers, of: .integer, as: .integers, byteCount: { _ in 8 }) { integer, bytes in
            withUnsafeBytes(of: integer.bigEndian) { bytes.append(contentsOf: $0) }
        }
    }

    mutating func add(_ byteStrings: [[UInt8]]) {
        add(byteStrings, of: .bytes, as: .byteStrings, byteCount: \.count) { $1.append(contentsOf: $0) }
    }

    /// An array of one dimension: its count, whether it has nulls, the type of its elements, their count, the lowest index, then each with its
    /// length. 4 bytes each, big-endian.
    private mutating func add<Element>(
        _ elements: [Element], of elementKind: Kind, as kind: Kind, byteCount: (Element) -> Int,
        append: (Element, inout [UInt8]) -> Void
    ) {
        arguments.add { bytes in
            func appendWord(_ word: Int32) { withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) } }
            for word in [1, 0, Int32(elementKind.oid), Int32(elements.count), 1] { appendWord(word) }
            for element in elements {
                appendWord(Int32(byteCount(element)))
                append(element, &bytes)
            }
        }
        kinds.append(kind)
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
