/// Frames on a stream: `length(varint) ‖ frame`.
package enum LengthFraming {
    package static func framed(_ frame: [UInt8]) -> [UInt8] {
        var writer = ProtobufWriter(capacity: frame.count + 4)
        writer.varint(UInt64(frame.count))
        writer.append(frame)
        return writer.bytes
    }
}
