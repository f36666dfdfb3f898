/// Writes a protobuf message field by field, in the order of the calls. Zeros and empty fields are written too: to omit proto3 defaults, do not
/// call.
package struct ProtobufWriter {
    @usableFromInline var storage: [UInt8] = []

    @inlinable package var bytes: [UInt8] { storage }

    @inlinable
    package init() {}

    @inlinable
    package init(capacity: Int) {
        storage.reserveCapacity(capacity)
    }

    @inlinable
    package mutating func field(_ number: Int, _ value: UInt64) {
        tag(number, 0)
        varint(value)
    }

    @inlinable
    package mutating func field(_ number: Int, _ value: Bool) {
        field(number, UInt64(value ? 1 : 0))
    }

    /// A `sint64`, zigzag-encoded.
    @inlinable
    package mutating func zigzagField(_ number: Int, _ value: Int64) {
        field(number, UInt64(bitPattern: value << 1 ^ value >> 63))
    }

    @inlinable
    package mutating func field(_ number: Int, _ content: some Collection<UInt8>) {
        tag(number, 2)
        varint(UInt64(content.count))
        storage += content
    }

    @inlinable
    package mutating func field(_ number: Int, _ text: String) {
        field(number, text.utf8)
    }

    /// A nested message.
    @inlinable
    package mutating func field(_ number: Int, _ fill: (inout ProtobufWriter) -> Void) {
        var nested = ProtobufWriter()
        fill(&nested)
        field(number, nested.bytes)
    }

    @inlinable
    package mutating func varint(_ value: UInt64) {
        Varint.append(value, to: &storage)
    }

    /// Appends a field that is encoded already.
    @inlinable
    package mutating func append(_ encoded: [UInt8]) {
        storage += encoded
    }

    @usableFromInline @inline(__always)
    mutating func tag(_ number: Int, _ wireType: UInt64) {
        varint(UInt64(number) << 3 | wireType)
    }
}
