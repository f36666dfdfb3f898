import NIOCore

/// The header of a yamux frame, hashicorp/yamux, spec.md. All fields are big-endian.
///
///     version(1) ‖ type(1) ‖ flags(2) ‖ stream(4) ‖ length(4)
///
/// Depending on the type, the length is that of the data that follows, a window increment, the value of a ping, or a go-away code.
struct YamuxHeader: Hashable {
    static let byteCount = 12

    enum Kind: UInt8 {
        case data = 0
        case windowUpdate = 1
        case ping = 2
        case goAway = 3
    }

    struct Flags: OptionSet, Hashable {
        let rawValue: UInt16
        static let syn = Flags(rawValue: 1)
        static let ack = Flags(rawValue: 2)
        static let fin = Flags(rawValue: 4)
        static let rst = Flags(rawValue: 8)
    }

    let kind: Kind
    let flags: Flags
    /// 0 is the session itself.
    let stream: UInt32
    let length: UInt32

    init(_ kind: Kind, _ flags: Flags = [], stream: UInt32, length: UInt32) {
        self.kind = kind
        self.flags = flags
        self.stream = stream
        self.length = length
    }

    /// nil while the header is incomplete.
    ///
    /// - Throws: ``YamuxError/malformedFrame``
    init?(takingFrom input: inout ByteBuffer) throws(YamuxError) {
        guard input.readableBytes >= Self.byteCount,
            let (version, type, flags, stream, length) = input.readMultipleIntegers(as: (UInt8, UInt8, UInt16, UInt32, UInt32).self)
        else { return nil }
        guard version == 0, let kind = Kind(rawValue: type) else { throw .malformedFrame }
        self.init(kind, Flags(rawValue: flags), stream: stream, length: length)
    }

    func write(to output: inout ByteBuffer) {
        output.writeMultipleIntegers(UInt8(0), kind.rawValue, flags.rawValue, stream, length)
    }
}

/// Why a yamux session ended.
public enum YamuxError: Error, Hashable, Sendable {
    /// An unknown version or frame type.
    case malformedFrame
    /// The peer opened a stream with an id that is in use, or that only this node may assign.
    case invalidStream
    /// The peer sent more data than the window allows.
    case windowExceeded
    /// Too many responses are waiting because the peer does not read them.
    case answersUnread
    /// A ping was not answered in time.
    case unanswered
    /// The peer ended the session.
    case goneAway(code: UInt32)
}
