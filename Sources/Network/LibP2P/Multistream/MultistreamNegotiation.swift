import NIOCore

/// Negotiates a protocol, multiformats/multistream-select 1.0. Bytes go in and out; the caller enforces a timeout.
///
///     varint length ‖ text ‖ "\n"
///
/// Both sides send `/multistream/1.0.0` first. The initiator proposes protocols; the responder repeats the one it accepts and answers `na` to
/// others.
struct MultistreamNegotiation {
    static let header = "/multistream/1.0.0"
    static let refusal = "na"
    /// The maximum length of a line, its end included. Protocol ids have about 30 bytes.
    static let lineLimit = 1_024
    /// The maximum number of proposals that a responder reads.
    static let proposalLimit = 32

    private enum Role {
        /// The first one was sent and is not answered yet.
        case initiator(proposals: ArraySlice<String>)
        case responder(heard: Int)
    }

    private var role: Role
    private var hasHeardHeader = false
    /// The bytes to send before anything is received.
    let opening: ByteBuffer

    /// - Precondition: At least one proposal.
    init(proposing proposals: [String]) {
        precondition(!proposals.isEmpty)
        role = .initiator(proposals: proposals[...])
        // The first proposal is sent together with the header: one round trip if it is accepted.
        var opening = Self.line(Self.header)
        opening.writeImmutableBuffer(Self.line(proposals[0]))
        self.opening = opening
    }

    static func responder() -> MultistreamNegotiation {
        MultistreamNegotiation()
    }

    private init() {
        role = .responder(heard: 0)
        opening = Self.line(Self.header)
    }

    /// Consumes complete lines from the front of `input` until a protocol is agreed on: the remaining bytes belong to that protocol.
    ///
    /// - Parameters:
    ///   - input: Received bytes.
    ///   - output: Bytes to send are appended.
    ///   - accepts: Whether this node supports a protocol; for a responder.
    /// - Returns: The protocol agreed on; nil while the negotiation is in progress.
    mutating func receive(
        _ input: inout ByteBuffer, output: inout ByteBuffer, accepts: (String) -> Bool
    ) throws(MultistreamError) -> String? {
        if !hasHeardHeader {
            // Checked byte by byte: a peer of another protocol may wait for a response before it completes a line.
            let first = input.getInteger(at: input.readerIndex, as: UInt8.self)
            guard first == nil || first == UInt8(Self.header.utf8.count + 1) else { throw .notMultistream }
            guard let line = try Self.takeLine(&input) else { return nil }
            guard line == Self.header else { throw .notMultistream }
            hasHeardHeader = true
        }
        while let line = try Self.takeLine(&input) {
            if let agreed = try answer(line, into: &output, accepts: accepts) { return agreed }
        }
        return nil
    }

    private mutating func answer(
        _ line: String, into output: inout ByteBuffer, accepts: (String) -> Bool
    ) throws(MultistreamError) -> String? {
        switch role {
        case .initiator(let proposals):
            if line == proposals.first { return line }
            guard line == Self.refusal else { throw .unexpectedAnswer }
            let rest = proposals.dropFirst()
            guard let next = rest.first else { throw .refused }
            role = .initiator(proposals: rest)
            output.writeImmutableBuffer(Self.line(next))
            return nil
        case .responder(let heard):
            if accepts(line) {
                output.writeImmutableBuffer(Self.line(line))
                return line
            }
            guard heard + 1 < Self.proposalLimit else { throw .tooManyProposals }
            role = .responder(heard: heard + 1)
            // `ls` is refused too: identify reports the protocols.
            output.writeImmutableBuffer(Self.line(Self.refusal))
            return nil
        }
    }

    private static func takeLine(_ input: inout ByteBuffer) throws(MultistreamError) -> String? {
        let prefix: (value: UInt64, byteCount: Int)?
        do { prefix = try input.getVarint() } catch { throw .malformedLine }
        guard let prefix else { return nil }
        guard (1...UInt64(lineLimit)).contains(prefix.value) else { throw .malformedLine }
        let count = Int(prefix.value)
        guard input.readableBytes >= prefix.byteCount + count else { return nil }
        input.moveReaderIndex(forwardBy: prefix.byteCount)
        guard let bytes = input.readBytes(length: count), bytes.last == UInt8(ascii: "\n"),
            let text = String(validating: bytes.dropLast(), as: UTF8.self)
        else { throw .malformedLine }
        return text
    }

    static func line(_ text: String) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeVarint(UInt64(text.utf8.count + 1))
        buffer.writeString(text)
        buffer.writeInteger(UInt8(ascii: "\n"))
        return buffer
    }
}

/// Why the negotiation failed.
public enum MultistreamError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The peer did not start with `/multistream/1.0.0`.
    case notMultistream
    /// A line is too long, empty, unterminated, or not UTF-8.
    case malformedLine
    /// The response is neither the proposal nor `na`.
    case unexpectedAnswer
    /// The peer supports none of the proposed protocols.
    case refused
    /// The peer made too many proposals.
    case tooManyProposals

    /// The reason, one phrase for an operator.
    public var description: String {
        switch self {
        case .notMultistream: "the peer does not speak multistream"
        case .malformedLine: "the peer sent a malformed line of multistream"
        case .unexpectedAnswer: "the peer answered another protocol than the proposed one"
        case .refused: "the peer does not support the protocol"
        case .tooManyProposals: "the peer proposed too many protocols"
        }
    }
}
