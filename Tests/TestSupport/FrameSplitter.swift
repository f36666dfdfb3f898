public import Core

/// Splits a stream of `length(varint) ‖ frame` into frames; the stream may arrive in pieces of any size.
///
/// Holds at most one incomplete frame and the last piece. A length over the limit is refused before any byte of its frame is kept.
public struct FrameSplitter: Sendable {
    private let limit: Int
    private var buffer: [UInt8] = []
    private var start = 0

    /// - Parameter limit: The largest frame, in bytes, without its length.
    public init(limit: Int) {
        self.limit = limit
    }

    /// The bytes held of a frame that is not complete.
    public var pendingByteCount: Int { buffer.count - start }

    public mutating func append(_ bytes: some Collection<UInt8>) {
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: buffer.capacity <= 1 << 17)
            start = 0
        } else if start > buffer.count / 2 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer += bytes
    }

    /// The next complete frame; nil when more bytes are needed.
    ///
    /// - Throws: ``ProtobufError/tooLong`` for a length over the limit, ``ProtobufError/malformed`` for a length of more than 5 bytes.
    public mutating func next() throws(ProtobufError) -> [UInt8]? {
        var length = 0
        var position = start
        var shift = 0
        while true {
            guard position < buffer.count else {
                // Five bytes that all announce another one: longer than the length of any frame.
                guard position - start < 5 else { throw .malformed }
                return nil
            }
            guard shift < 35 else { throw .malformed }
            let byte = buffer[position]
            position += 1
            length |= Int(byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 { break }
        }
        guard length <= limit else { throw .tooLong }
        guard buffer.count - position >= length else { return nil }
        let frame = Array(buffer[position..<position + length])
        start = position + length
        return frame
    }
}
