/// Limits the number of fields before protobuf-c decodes a message.
///
/// protobuf-c allocates as many entries as the bytes promise: two bytes of input can cost a hundred of memory. Counting allocates nothing. Groups
/// are malformed.
package enum ProtobufScan {
    /// Checks that a message has at most `limit` fields.
    ///
    /// - Throws: ``ProtobufError/malformed``, ``ProtobufError/tooMany``
    package static func check(_ bytes: [UInt8], fieldLimit limit: Int) throws(ProtobufError) {
        try check(ProtobufReader(bytes, refusing: .groups), limit) { _ throws(ProtobufError) in }
    }

    /// Limit of the fields of all messages in a repeated field together: as many as the largest answer has.
    private static let nestedFieldTotal = 120_064

    /// Like ``check(_:fieldLimit:)``, also for each message in a repeated field, and for all of them together.
    package static func checkNested(
        _ bytes: [UInt8], field number: Int, fieldLimit: Int, nestedFieldLimit: Int
    ) throws(ProtobufError) {
        var total = 0
        try check(ProtobufReader(bytes, refusing: .groups), fieldLimit) { field throws(ProtobufError) in
            guard field.number == number else { return }
            // A field of another wire type is skipped by protobuf-c: it counts as an empty message.
            guard case .content(let range) = field.value else { return }
            try check(ProtobufReader(bytes, range, refusing: .groups), nestedFieldLimit) { _ throws(ProtobufError) in
                total += 1
                guard total <= nestedFieldTotal else { throw .tooMany }
            }
        }
    }

    @inline(__always)
    private static func check(
        _ fields: ProtobufReader, _ limit: Int, visit: (ProtobufReader.Field) throws(ProtobufError) -> Void
    ) throws(ProtobufError) {
        var reader = fields
        var count = 0
        while let field = try reader.next() {
            count += 1
            guard count <= limit else { throw .tooMany }
            try visit(field)
        }
    }
}
