/// Why bytes are not the protobuf that they should be.
public enum ProtobufError: Error, Hashable, Sendable {
    /// Not a protobuf, or a field of the wrong wire type.
    case malformed
    /// A string is not UTF-8.
    case notUTF8
    /// More fields or entries of a list than its type allows.
    case tooMany
}

/// Walks the fields of a protobuf without allocating anything.
///
/// protobuf-c makes room for as many entries as the bytes promise: two bytes of input can cost a hundred of memory. So counts are checked
/// here first.
package struct ProtobufScan {
    /// One field as it stands in the bytes. `content` is empty unless it is length-delimited.
    package struct Field {
        package let number: Int
        package let content: Range<Int>
    }

    /// Calls `visit` for each field in order.
    ///
    /// - Throws: ``ProtobufError/malformed``, and what `visit` throws.
    package static func forEachField(
        in bytes: [UInt8], range: Range<Int>, visit: (Field) throws(ProtobufError) -> Void
    ) throws(ProtobufError) {
        var position = range.lowerBound
        while position < range.upperBound {
            let tag = try varint(bytes, &position, range.upperBound)
            guard let number = Int(exactly: tag >> 3), number > 0 else { throw .malformed }
            var content = position..<position
            switch tag & 7 {
            case 0: _ = try varint(bytes, &position, range.upperBound)
            case 1: try skip(8, &position, range.upperBound)
            case 2:
                let length = try varint(bytes, &position, range.upperBound)
                guard let count = Int(exactly: length) else { throw .malformed }
                let start = position
                try skip(count, &position, range.upperBound)
                content = start..<position
            case 5: try skip(4, &position, range.upperBound)
            default: throw .malformed
            }
            try visit(Field(number: number, content: content))
        }
    }

    /// Checks that no message has more fields than `limit` in all.
    package static func check(_ bytes: [UInt8], fieldLimit limit: Int) throws(ProtobufError) {
        var count = 0
        try forEachField(in: bytes, range: bytes.indices) { _ throws(ProtobufError) in
            count += 1
            guard count <= limit else { throw .tooMany }
        }
    }

    /// As ``check(_:fieldLimit:)``, and the same for each message in a repeated field.
    package static func checkNested(
        _ bytes: [UInt8], field number: Int, fieldLimit: Int, nestedFieldLimit: Int
    ) throws(ProtobufError) {
        var count = 0
        try forEachField(in: bytes, range: bytes.indices) { field throws(ProtobufError) in
            count += 1
            guard count <= fieldLimit else { throw .tooMany }
            guard field.number == number else { return }
            var nested = 0
            try forEachField(in: bytes, range: field.content) { _ throws(ProtobufError) in
                nested += 1
                guard nested <= nestedFieldLimit else { throw .tooMany }
            }
        }
    }

    private static func skip(_ count: Int, _ position: inout Int, _ end: Int) throws(ProtobufError) {
        guard count <= end - position else { throw .malformed }
        position += count
    }

    private static func varint(_ bytes: [UInt8], _ position: inout Int, _ end: Int) throws(ProtobufError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard position < end else { throw .malformed }
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw .malformed
    }
}
