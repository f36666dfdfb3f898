/// Reads the fields of a protobuf one by one, without copying.
///
/// By hand, as ``ProtobufWriter``: libp2p's own three messages have a dozen flat fields in all, which is less than what generated code for
/// them needs around it.
struct ProtobufReader {
    enum Value: Hashable {
        case varint(UInt64)
        case bytes(ArraySlice<UInt8>)
        /// Of 4 or 8 bytes: none of the messages here has one.
        case fixed
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    /// nil at the end.
    ///
    /// - Throws: ``ProtobufDecodingError``
    mutating func next() throws(ProtobufDecodingError) -> (number: UInt64, value: Value)? {
        guard !rest.isEmpty else { return nil }
        let tag = try varint()
        guard (1...536_870_911).contains(tag >> 3) else { throw .malformed }
        switch tag & 7 {
        case 0: return (tag >> 3, .varint(try varint()))
        case 1: return try (tag >> 3, fixed(8))
        case 2:
            let length = try varint()
            guard length <= UInt64(rest.count) else { throw .malformed }
            let content = rest.prefix(Int(length))
            rest = rest.dropFirst(Int(length))
            return (tag >> 3, .bytes(content))
        case 5: return try (tag >> 3, fixed(4))
        default: throw .malformed
        }
    }

    private mutating func fixed(_ count: Int) throws(ProtobufDecodingError) -> Value {
        guard rest.count >= count else { throw .malformed }
        rest = rest.dropFirst(count)
        return .fixed
    }

    /// Protobuf's may be longer than they must be, and have 64 bits.
    private mutating func varint() throws(ProtobufDecodingError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = rest.popFirst() else { throw .malformed }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw .malformed
    }
}

enum ProtobufDecodingError: Error, Hashable {
    case malformed
}

/// Writes the fields of a protobuf in the order of the calls.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    mutating func varint(_ number: UInt64, _ value: UInt64) {
        Varint.append(number << 3, to: &bytes)
        Varint.append(value, to: &bytes)
    }

    mutating func field(_ number: UInt64, _ content: some Collection<UInt8>) {
        Varint.append(number << 3 | 2, to: &bytes)
        Varint.append(UInt64(content.count), to: &bytes)
        bytes.append(contentsOf: content)
    }
}
