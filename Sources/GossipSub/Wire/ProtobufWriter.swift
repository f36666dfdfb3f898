/// Puts a protobuf together, field after field. Fields are written as they are called, zeros and empty ones too: who wants proto3's
/// defaults left out does not call.
package struct ProtobufWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package init(capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    package mutating func field(_ number: Int, _ value: UInt64) {
        tag(number, 0)
        varint(value)
    }

    package mutating func field(_ number: Int, _ value: Bool) {
        field(number, UInt64(value ? 1 : 0))
    }

    /// As `sint64`: zigzag.
    package mutating func zigzagField(_ number: Int, _ value: Int64) {
        field(number, UInt64(bitPattern: value << 1 ^ value >> 63))
    }

    package mutating func field(_ number: Int, _ content: some Collection<UInt8>) {
        tag(number, 2)
        varint(UInt64(content.count))
        bytes += content
    }

    package mutating func field(_ number: Int, _ text: String) {
        field(number, text.utf8)
    }

    /// A message inside the message.
    package mutating func field(_ number: Int, _ fill: (inout ProtobufWriter) -> Void) {
        var nested = ProtobufWriter()
        fill(&nested)
        field(number, nested.bytes)
    }

    package mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// What is a whole field already.
    package mutating func append(_ encoded: [UInt8]) {
        bytes += encoded
    }

    private mutating func tag(_ number: Int, _ wireType: UInt64) {
        varint(UInt64(number) << 3 | wireType)
    }

    /// How many bytes a varint takes: 1 to 10.
    package static func varintByteCount(_ value: UInt64) -> Int {
        max(1, (70 - value.leadingZeroBitCount) / 7)
    }
}

/// The number that zigzag stands for, as `sint64` has it.
package func unzigzag(_ value: UInt64) -> Int64 {
    Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
}
