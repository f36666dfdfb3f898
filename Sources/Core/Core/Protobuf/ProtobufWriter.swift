// Public although only this package uses it: the compiler inlines and specializes public functions across modules, but not package ones
// (Swift 6.3), which made these 3 to 6 times slower.

/// Writes a protobuf message field by field, in the order of the calls. Zeros and empty fields are written too: to omit a proto3 default, do not
/// write the field.
public struct ProtobufWriter {
    @usableFromInline var storage: [UInt8] = []

    /// The fields written so far.
    @inlinable public var bytes: [UInt8] { storage }

    /// An empty message.
    @inlinable
    public init() {}

    /// - Parameter capacity: Bytes to reserve; more can be written.
    @inlinable
    public init(capacity: Int) {
        storage.reserveCapacity(capacity)
    }

    /// Writes a varint field: a `uint32`, `uint64`, enumeration, or the bit pattern of an `int64`.
    @inlinable
    public mutating func field(_ number: Int, _ value: UInt64) {
        tag(number, 0)
        varint(value)
    }

    /// Writes a `bool`.
    @inlinable
    public mutating func field(_ number: Int, _ value: Bool) {
        field(number, UInt64(value ? 1 : 0))
    }

    /// A `sint64`, zigzag-encoded.
    @inlinable
    public mutating func zigzagField(_ number: Int, _ value: Int64) {
        field(number, UInt64(bitPattern: value << 1 ^ value >> 63))
    }

    /// Writes a `bytes` field: tag, length and content.
    @inlinable
    public mutating func field(_ number: Int, _ content: some Collection<UInt8>) {
        tag(number, 2)
        varint(UInt64(content.count))
        storage += content
    }

    /// Writes a `string` field.
    @inlinable
    public mutating func field(_ number: Int, _ text: String) {
        field(number, text.utf8)
    }

    /// A nested message.
    @inlinable
    public mutating func field(_ number: Int, _ fill: (inout ProtobufWriter) -> Void) {
        var nested = ProtobufWriter()
        fill(&nested)
        field(number, nested.bytes)
    }

    /// Appends a varint without a tag, for packed fields and length prefixes.
    @inlinable
    public mutating func varint(_ value: UInt64) {
        Varint.append(value, to: &storage)
    }

    /// Appends a field that is encoded already.
    @inlinable
    public mutating func append(_ encoded: [UInt8]) {
        storage += encoded
    }

    @inlinable @inline(__always)
    mutating func tag(_ number: Int, _ wireType: UInt64) {
        varint(UInt64(number) << 3 | wireType)
    }
}
