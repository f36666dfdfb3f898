import CPushMessages
import Wire
import Core
import Waku

/// A part of an envelope that was too large for one Waku message.
///
///     1 Keccak-256 of the whole    2 index    3 count    4 payload
public struct SegmentMessage: Hashable, Sendable {
    private static let fieldLimit = 64

    public let wholeHash: [UInt8]
    public let index: Int
    public let count: Int
    public let payload: [UInt8]

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

    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__segment_message__init) { message, arena in
            message.entire_message_hash = arena.data(wholeHash)
            message.index = UInt32(index)
            message.segments_count = UInt32(count)
            message.payload = arena.data(payload)
        }
    }
}
