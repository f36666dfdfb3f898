import NIOCore

/// Agrees with the other side on a protocol, multiformats/multistream-select 1.0. Bytes go in and out; the caller keeps time.
///
///     varint length ‖ text ‖ "\n"
///
/// Both say `/multistream/1.0.0` first. The initiator proposes, the responder repeats what it takes, and answers `na` to the rest.
struct MultistreamNegotiation {
    static let header = "/multistream/1.0.0"
    static let refusal = "na"
    /// Of a line with its end. Protocol ids are some 30 bytes long.
    static let lineLimit = 1_024
    /// Lines after the header: proposals that a responder hears, before it gives up.
    static let proposalLimit = 32

    private enum Role {
        /// The one proposed now is the first.
        case initiator(proposals: ArraySlice<String>)
        case responder(heard: Int)
    }

    private var role: Role
    private var hasHeardHeader = false
    /// What is to be sent before anything is received.
    let opening: ByteBuffer

    /// - Precondition: one proposal at least.
    init(proposing proposals: [String]) {
        precondition(!proposals.isEmpty)
        role = .initiator(proposals: proposals[...])
        // The first proposal goes along with the header: one round trip when it is taken.
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

    /// Takes the lines that are there off the front of `input`, until a protocol is agreed on: what follows then belongs to that.
    ///
    /// - Parameters:
    ///   - output: Answers are appended.
    ///   - accepts: Whether a proposal is spoken here. For a responder.
    /// - Returns: What was agreed on, or nil while it is open.
    mutating func receive(
        _ input: inout ByteBuffer, output: inout ByteBuffer, accepts: (String) -> Bool
    ) throws(MultistreamError) -> String? {
        if !hasHeardHeader {
            // Told from the first byte: who speaks another protocol may wait for an answer instead of finishing a line.
            let first = input.getInteger(at: input.readerIndex, as: UInt8.self)
            guard first == nil || first == UInt8(Self.header.utf8.count + 1) else { throw .notMultistream }
            guard let line = try Self.takeLine(&input) else { return nil }
            guard line == Self.header else { throw .notMultistream }
            hasHeardHeader = true
        }
        while let line = try Self.takeLine(&input) {
            if let agreed = try answer(line, &output, accepts) { return agreed }
        }
        return nil
    }

    private mutating func answer(
        _ line: String, _ output: inout ByteBuffer, _ accepts: (String) -> Bool
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
            // `ls` too: what is spoken here is told by identify.
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

/// Why no protocol was agreed on.
public enum MultistreamError: Error, Hashable, Sendable {
    /// The other side does not begin with `/multistream/1.0.0`.
    case notMultistream
    /// Too long, empty, without its end, or not UTF-8.
    case malformedLine
    /// Neither what was proposed nor `na`.
    case unexpectedAnswer
    /// Nothing that was proposed is spoken there.
    case refused
    /// The other side proposes without end.
    case tooManyProposals
}
