/// Walks the fields of a protobuf, or of a message inside one, without copying anything.
///
///     field = tag(varint: number << 3 | wire type) ‖ value
///     value = varint, type 0 · 8 bytes, type 1 · length(varint) ‖ bytes, type 2 · 4 bytes, type 5
///
///           | group, type 3: fields up to the end tag, type 4
///
/// What a caller does not know it skips by asking for the next. Groups are skipped as well, and numbers beyond 29 bits are unknown fields: Go's gossip
/// forwards unknown fields of a message as they came, so that whoever forwards them is not who made them up.
package struct ProtobufReader {
    package struct Field {
        package let number: Int
        package let value: Value
    }

    package enum Value {
        case varint(UInt64)
        /// Where the bytes stand in ``ProtobufReader/bytes``.
        case content(Range<Int>)
        /// 4 or 8 bytes, or a group: nothing that is read here has such fields.
        case skipped
    }

    package let bytes: [UInt8]
    package private(set) var position: Int
    private let end: Int

    package init(_ bytes: [UInt8]) {
        self.init(bytes, bytes.indices)
    }

    /// - Parameter range: Must lie within the bytes.
    package init(_ bytes: [UInt8], _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    /// nil at the end.
    package mutating func next() throws(WireError) -> Field? {
        guard position < end else { return nil }
        let tag = try varint()
        guard tag >> 3 > 0 else { throw .malformed }
        let number = Int(tag >> 3)
        switch tag & 7 {
        case 0: return Field(number: number, value: .varint(try varint()))
        case 1: try skip(8)
        case 2:
            let length = try varint()
            guard length <= UInt64(end - position) else { throw .malformed }
            let start = position
            position += Int(length)
            return Field(number: number, value: .content(start..<position))
        case 3: try skipGroup()
        case 5: try skip(4)
        default: throw .malformed
        }
        return Field(number: number, value: .skipped)
    }

    /// Up to the tag that ends it. Counts the groups within it, without regard to their numbers: nothing of them is used.
    private mutating func skipGroup() throws(WireError) {
        var depth = 1
        while depth > 0 {
            let tag = try varint()
            guard tag >> 3 > 0 else { throw .malformed }
            switch tag & 7 {
            case 0: _ = try varint()
            case 1: try skip(8)
            case 2:
                let length = try varint()
                guard length <= UInt64(end - position) else { throw .malformed }
                position += Int(length)
            case 3: depth += 1
            case 4: depth -= 1
            case 5: try skip(4)
            default: throw .malformed
            }
        }
    }

    /// At most 10 bytes.
    package mutating func varint() throws(WireError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while shift < 70 {
            guard position < end else { throw .malformed }
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw .malformed
    }

    private mutating func skip(_ count: Int) throws(WireError) {
        guard count <= end - position else { throw .malformed }
        position += count
    }
}

extension ProtobufReader.Field {
    /// - Throws: ``WireError/malformed`` when it is not a varint.
    package func varint() throws(WireError) -> UInt64 {
        guard case .varint(let value) = value else { throw .malformed }
        return value
    }

    /// - Throws: ``WireError/malformed`` when it is not length-delimited.
    package func content() throws(WireError) -> Range<Int> {
        guard case .content(let range) = value else { throw .malformed }
        return range
    }

    package func bytes(of reader: ProtobufReader, limit: Int) throws(WireError) -> [UInt8] {
        let range = try content()
        guard range.count <= limit else { throw .tooLong }
        return Array(reader.bytes[range])
    }

    package func string(of reader: ProtobufReader, limit: Int) throws(WireError) -> String {
        let range = try content()
        guard range.count <= limit else { throw .tooLong }
        guard let string = String(validating: reader.bytes[range], as: UTF8.self) else { throw .notUTF8 }
        return string
    }

    /// A message inside the message.
    package func nested(in reader: ProtobufReader) throws(WireError) -> ProtobufReader {
        ProtobufReader(reader.bytes, try content())
    }
}
