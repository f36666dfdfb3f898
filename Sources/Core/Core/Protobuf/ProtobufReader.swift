// Public although only this package uses it: the compiler inlines and specializes public functions across modules, but not package ones
// (Swift 6.3), which made these 3 to 6 times slower.

/// Reads the fields of a protobuf message, or of a message nested in it, without copying or allocating.
///
///     field = tag(varint: number << 3 | wire type) ‖ value
///     value = varint, type 0 · 8 bytes, type 1 · length(varint) ‖ bytes, type 2 · 4 bytes, type 5
///           | group, type 3: fields up to the end tag, type 4
///
/// Unknown fields are skipped by calling ``next()`` again. By default groups are skipped too, and field numbers may be longer than 29 bits: Go's
/// gossip forwards the unknown fields of a message unchanged, so the peer that forwards them is not the one that wrote them.
public struct ProtobufReader {
    /// A field of a message.
    public struct Field {
        /// At least 1. Above 2^29 - 1 only if the reader accepts ``Refusals/longFieldNumbers``.
        public let number: Int
        /// The value, or its position in the reader's bytes.
        public let value: Value

        /// Ranges refer to the bytes of the reader that returned the field; the number is at least 1.
        @inlinable
        public init(number: Int, value: Value) {
            self.number = number
            self.value = value
        }
    }

    /// The value of a field, by wire type.
    public enum Value: Hashable {
        /// Wire type 0: integers, booleans and enumerations. Decode a `sint64` by ``unzigzag(_:)``.
        case varint(UInt64)
        /// The range of a length-delimited field in ``ProtobufReader/bytes``.
        case content(Range<Int>)
        /// A fixed field of 4 or 8 bytes, or a group: no message read here uses them.
        case skipped
    }

    /// Encodings that ``next()`` rejects when they are listed, although some protobuf decoders accept them.
    public struct Refusals: OptionSet, Sendable {
        /// One bit for each refusal.
        public let rawValue: UInt8

        /// - Parameter rawValue: The bits of ``groups`` and ``longFieldNumbers``.
        @inlinable
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Groups, which proto3 does not have.
        @inlinable public static var groups: Refusals { Refusals(rawValue: 1) }
        /// Field numbers from 2^29, which no message definition can have.
        @inlinable public static var longFieldNumbers: Refusals { Refusals(rawValue: 2) }
    }

    /// All bytes, also those outside the range that is read: ranges of fields are indices into them.
    public let bytes: [UInt8]
    @usableFromInline var offset: Int
    @usableFromInline let end: Int
    @usableFromInline let refusals: Refusals

    /// Reads all bytes as one message, which is not trusted.
    @inlinable
    public init(_ bytes: [UInt8], refusing refusals: Refusals = []) {
        self.init(bytes, bytes.indices, refusing: refusals)
    }

    /// - Parameter range: Must lie within the bytes.
    @inlinable
    public init(_ bytes: [UInt8], _ range: Range<Int>, refusing refusals: Refusals = []) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        self.bytes = bytes
        offset = range.lowerBound
        end = range.upperBound
        self.refusals = refusals
    }

    /// The index in ``bytes`` of the next byte to read.
    @inlinable public var position: Int { offset }
    /// Whether no bytes are left to read.
    @inlinable public var isAtEnd: Bool { offset >= end }

    /// The next field; nil at the end.
    ///
    /// - Throws: ``ProtobufError/malformed``
    @inlinable
    public mutating func next() throws(ProtobufError) -> Field? {
        guard !isAtEnd else { return nil }
        let tag = try varint()
        guard tag >> 3 > 0 else { throw .malformed }
        if refusals.contains(.longFieldNumbers), tag >> 3 >= 1 << 29 { throw .malformed }
        let number = Int(tag >> 3)
        switch tag & 7 {
        case 0: return Field(number: number, value: .varint(try varint()))
        case 1: try skip(8)
        case 2: return Field(number: number, value: .content(try content()))
        case 3:
            guard !refusals.contains(.groups) else { throw .malformed }
            try skipGroup()
        case 5: try skip(4)
        default: throw .malformed
        }
        return Field(number: number, value: .skipped)
    }

    /// Skips to the end of a group. Nested groups are counted; field numbers are ignored, since no content is used.
    @usableFromInline
    mutating func skipGroup() throws(ProtobufError) {
        var depth = 1
        while depth > 0 {
            let tag = try varint()
            guard tag >> 3 > 0 else { throw .malformed }
            switch tag & 7 {
            case 0: _ = try varint()
            case 1: try skip(8)
            case 2: _ = try content()
            case 3: depth += 1
            case 4: depth -= 1
            case 5: try skip(4)
            default: throw .malformed
            }
        }
    }

    // MARK: Values

    /// A varint of at most 10 bytes; bits beyond the 64th are dropped.
    ///
    /// - Throws: ``ProtobufError/malformed``
    @inlinable
    public mutating func varint() throws(ProtobufError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while shift < 70 {
            guard offset < end else { throw .malformed }
            let byte = bytes[offset]
            offset += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw .malformed
    }

    /// The range of `length(varint) ‖ bytes`, without the length.
    ///
    /// - Throws: ``ProtobufError/malformed``
    @inlinable
    public mutating func content() throws(ProtobufError) -> Range<Int> {
        let length = try varint()
        let start = offset
        try skip(length)
        return start..<offset
    }

    /// - Throws: ``ProtobufError/malformed``
    @inlinable
    public mutating func skip(_ byteCount: UInt64) throws(ProtobufError) {
        guard byteCount <= UInt64(end - offset) else { throw .malformed }
        offset += Int(byteCount)
    }
}

extension ProtobufReader.Field {
    /// - Throws: ``ProtobufError/malformed`` when it is not a varint.
    @inlinable
    public func varint() throws(ProtobufError) -> UInt64 {
        guard case .varint(let value) = value else { throw .malformed }
        return value
    }

    /// - Throws: ``ProtobufError/malformed`` when it is not length-delimited.
    @inlinable
    public func content() throws(ProtobufError) -> Range<Int> {
        guard case .content(let range) = value else { throw .malformed }
        return range
    }

    /// - Throws: ``ProtobufError/malformed``, ``ProtobufError/tooLong``
    @inlinable
    public func bytes(of reader: ProtobufReader, limit: Int) throws(ProtobufError) -> [UInt8] {
        let range = try content()
        guard range.count <= limit else { throw .tooLong }
        return Array(reader.bytes[range])
    }

    /// - Throws: ``ProtobufError/malformed``, ``ProtobufError/tooLong``, ``ProtobufError/notUTF8``
    @inlinable
    public func string(of reader: ProtobufReader, limit: Int) throws(ProtobufError) -> String {
        let range = try content()
        guard range.count <= limit else { throw .tooLong }
        guard let string = String(validating: reader.bytes[range], as: UTF8.self) else { throw .notUTF8 }
        return string
    }

    /// A reader of the message in this field.
    @inlinable
    public func nested(in reader: ProtobufReader) throws(ProtobufError) -> ProtobufReader {
        ProtobufReader(reader.bytes, try content())
    }
}

/// Decodes a `sint64`, which is zigzag-encoded.
@inlinable
public func unzigzag(_ value: UInt64) -> Int64 {
    Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
}
