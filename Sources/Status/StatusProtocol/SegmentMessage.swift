import CPushMessages
import Core
import Waku

/// A part of an envelope that was too large for one Waku message.
///
///     1 Keccak-256 of the whole    2 index    3 count    4 payload
public struct SegmentMessage: Hashable, Sendable {
    private static let fieldLimit = 64

    /// Keccak-256 of the whole envelope, 32 bytes in a valid segment.
    public let wholeHash: [UInt8]
    /// The position of this part, from 0.
    public let index: Int
    /// The number of parts, at least 2 in a valid segment.
    public let count: Int
    /// The bytes of this part; never empty in a parsed segment.
    public let payload: [UInt8]

    /// - Parameters:
    ///   - wholeHash: Keccak-256 of the whole envelope.
    ///   - index: From 0 to `count` - 1.
    ///   - count: The number of parts, at most `UInt32.max`.
    ///   - payload: The bytes of this part.
    public init(wholeHash: [UInt8], index: Int, count: Int, payload: [UInt8]) {
        self.wholeHash = wholeHash
        self.index = index
        self.count = count
        self.payload = payload
    }

    /// nil if it is not a segment: an envelope parses as a segment too, but only a segment has a payload in field 4.
    public init?(parsing bytes: [UInt8]) {
        guard let segment = try? Self.parse(bytes), !segment.payload.isEmpty else { return nil }
        self = segment
    }

    private static func parse(_ bytes: [UInt8]) throws(ProtobufError) -> SegmentMessage {
        try ProtobufScan.check(bytes, fieldLimit: fieldLimit)
        return try ProtobufC.decode(bytes, protobuf__segment_message__init) { message throws(ProtobufError) in
            guard message.pointee.payload.len > 0 else { throw .malformed }
            return SegmentMessage(
                wholeHash: message.pointee.entire_message_hash.bytes, index: Int(message.pointee.index),
                count: Int(message.pointee.segments_count), payload: message.pointee.payload.bytes)
        }
    }

    /// The protobuf encoding: the data of a Waku payload.
    ///
    /// - Precondition: ``index`` and ``count`` fit into 32 bits without sign, as those of parsed segments do.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__segment_message__init) { message, arena in
            message.entire_message_hash = arena.data(wholeHash)
            message.index = UInt32(index)
            message.segments_count = UInt32(count)
            message.payload = arena.data(payload)
        }
    }
}
