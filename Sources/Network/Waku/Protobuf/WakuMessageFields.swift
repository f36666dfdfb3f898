package import Core

/// The fields of an encoded ``WakuMessage``, and the deployed implementations that cannot decode it.
///
/// Fields are read as proto3 decoders read them: the last occurrence of a field counts; unknown fields, and known fields with another wire type, are
/// skipped. Nothing is stored for skipped fields, so their number needs no limit.
package struct WakuMessageFields: Sendable {
    /// The implementations whose relays validate what they forward.
    package struct Decoders: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// google.golang.org/protobuf
        package static let goWaku = Decoders(rawValue: 1)
        /// nim-libp2p's minprotobuf
        package static let nwaku = Decoders(rawValue: 2)
        package static let all: Decoders = [.goWaku, .nwaku]
    }

    /// Field 1; nil when there is none.
    package private(set) var payload: Range<Int>?
    /// Field 2; nil when there is none. May be invalid UTF-8: only go-waku checks it.
    package private(set) var contentTopic: Range<Int>?
    /// Field 3.
    package private(set) var version: UInt32 = 0
    /// Field 10.
    package private(set) var timestamp: Int64 = 0
    /// Field 11.
    package private(set) var meta = 0..<0
    /// Field 31.
    package private(set) var isEphemeral = false
    /// The implementations that cannot decode these bytes; never all of them.
    package private(set) var refusedBy: Decoders = []

    /// - Throws: `ProtobufError.malformed` for bytes that no deployed implementation decodes.
    package init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var reader = Reader(bytes)
        while !reader.isAtEnd {
            let (number, wireType) = try reader.tag()
            switch (wireType, number) {
            case (0, 3):
                let value = try reader.varint(nwakuByteLimit: 5)
                version = UInt32(truncatingIfNeeded: value)
            case (0, 10):
                let value = try reader.varint()
                timestamp = unzigzag(value)
            case (0, 31): isEphemeral = try reader.varint(nwakuByteLimit: 5) != 0
            case (2, 1): payload = try reader.content()
            case (2, 2):
                let content = try reader.content()
                contentTopic = content
                // Each occurrence is checked, though only the last one counts.
                if String(validating: bytes[content], as: UTF8.self) == nil { reader.refusedBy.insert(.goWaku) }
            case (2, 11): meta = try reader.content()
            default: try reader.skip(number, wireType)
            }
        }
        guard reader.refusedBy != .all else { throw .malformed }
        refusedBy = reader.refusedBy
    }
}

extension WakuMessageFields {
    /// Reads fields and records which decoders would fail.
    private struct Reader {
        /// Go allows 10,000. No known message type has groups.
        static let groupDepthLimit = 100

        private var wire: ProtobufReader
        var refusedBy: Decoders = []

        init(_ bytes: [UInt8]) {
            wire = ProtobufReader(bytes)
        }

        var isAtEnd: Bool { wire.isAtEnd }

        /// Go accepts field numbers from 1 to 2^29 - 1, nwaku any.
        mutating func tag() throws(ProtobufError) -> (number: UInt64, wireType: UInt64) {
            let tag = try varint()
            if tag >> 3 == 0 || tag >> 3 >= 1 << 29 { refusedBy.insert(.goWaku) }
            return (tag >> 3, tag & 7)
        }

        /// Reads up to 10 bytes. Go accepts only 0 or 1 as the tenth byte; nwaku accepts at most 5 bytes for a 32-bit field.
        mutating func varint(nwakuByteLimit: Int = 10) throws(ProtobufError) -> UInt64 {
            let start = wire.position
            let value = try wire.varint()
            let byteCount = wire.position - start
            if byteCount == 10, wire.bytes[wire.position - 1] > 1 { refusedBy.insert(.goWaku) }
            if byteCount > nwakuByteLimit { refusedBy.insert(.nwaku) }
            return value
        }

        mutating func content() throws(ProtobufError) -> Range<Int> {
            let length = try varint()
            let start = wire.position
            try wire.skip(length)
            return start..<wire.position
        }

        mutating func skip(_ number: UInt64, _ wireType: UInt64) throws(ProtobufError) {
            switch wireType {
            case 0: _ = try varint()
            case 1: try wire.skip(8)
            case 2: _ = try content()
            case 3: try skipGroup(number)
            case 5: try wire.skip(4)
            default: throw .malformed
            }
        }

        /// Go skips a group of any fields up to the end tag of the same number; nwaku does not support groups.
        private mutating func skipGroup(_ number: UInt64) throws(ProtobufError) {
            refusedBy.insert(.nwaku)
            var open = [number]
            while let innermost = open.last {
                let (number, wireType) = try tag()
                switch wireType {
                case 3:
                    guard open.count < Self.groupDepthLimit else { throw .malformed }
                    open.append(number)
                case 4:
                    guard number == innermost else { throw .malformed }
                    open.removeLast()
                default: try skip(number, wireType)
                }
            }
        }
    }
}
