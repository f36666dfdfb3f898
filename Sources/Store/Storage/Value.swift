/// A value of a column.
public enum Value: Hashable, Sendable {
    case null
    case integer(Int64)
    case text(String)
    case bytes([UInt8])

    package init(_ integer: Int64?) {
        self = integer.map(Value.integer) ?? .null
    }

    package init(_ bytes: [UInt8]?) {
        self = bytes.map(Value.bytes) ?? .null
    }
}

/// Values in the order of the `Query.outputs` that they were read for.
public struct Row: Hashable, Sendable {
    package let values: [Value]

    package init(_ values: [Value]) {
        self.values = values
    }

    package func isNull(_ index: Int) -> Bool { values[index] == .null }

    /// The integer in a column of the query.
    public func integer(_ index: Int) throws(UnexpectedValue) -> Int64 {
        guard case .integer(let integer) = values[index] else { throw UnexpectedValue() }
        return integer
    }

    /// The bytes in a column of the query.
    public func bytes(_ index: Int) throws(UnexpectedValue) -> [UInt8] {
        guard case .bytes(let bytes) = values[index] else { throw UnexpectedValue() }
        return bytes
    }

    /// The text in a column of the query.
    public func text(_ index: Int) throws(UnexpectedValue) -> String {
        guard case .text(let text) = values[index] else { throw UnexpectedValue() }
        return text
    }

    /// nil for null.
    package func optionalInteger(_ index: Int) throws(UnexpectedValue) -> Int64? {
        isNull(index) ? nil : try integer(index)
    }

    /// nil for null.
    package func optionalBytes(_ index: Int) throws(UnexpectedValue) -> [UInt8]? {
        isNull(index) ? nil : try bytes(index)
    }

    /// A version: an unsigned number, stored as the signed integer with the same bits.
    public func unsigned(_ index: Int) throws(UnexpectedValue) -> UInt64 {
        UInt64(bitPattern: try integer(index))
    }
}

/// A value has an unexpected type, as in a damaged row.
public struct UnexpectedValue: Error {
    package init() {}
}
