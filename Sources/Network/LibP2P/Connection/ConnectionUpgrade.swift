import NIOCore

/// Upgrades a raw connection: negotiates `/noise`, performs the handshake, negotiates `/yamux/1.0.0`. Bytes go in and out; the caller enforces a
/// timeout for each step.
///
///     security ──agreed──▶ handshake ──both known──▶ muxer ──agreed──▶ Upgraded
struct ConnectionUpgrade {
    static let security = "/noise"
    static let muxer = "/yamux/1.0.0"

    struct Upgraded {
        let peer: PeerID
        var transport: NoiseTransport
        /// Decrypted bytes received for the muxer.
        var plain: ByteBuffer
    }

    private enum State {
        case security(MultistreamNegotiation, NoiseUpgrade)
        case handshake(NoiseUpgrade)
        case muxer(MultistreamNegotiation, NoiseUpgrade.Secured, plain: ByteBuffer)
    }

    private let role: NoiseHandshake.Role
    private var state: State

    /// The number of steps that are done, each of which has a timeout.
    private(set) var stepsDone = 0

    init(_ role: NoiseHandshake.Role, identity: NoiseIdentity, expecting expected: PeerID?) {
        self.role = role
        state = .security(Self.negotiation(role, Self.security), NoiseUpgrade(role, identity: identity, expecting: expected))
    }

    /// The bytes to send before anything is received.
    var opening: ByteBuffer {
        guard case .security(let negotiation, _) = state else { return ByteBuffer() }
        return negotiation.opening
    }

    /// Consumes bytes from the front of `input`.
    ///
    /// - Parameters:
    ///   - input: Received bytes. Those not consumed must be passed again with further ones.
    ///   - output: Bytes to send are appended, encrypted if the handshake is complete.
    /// - Returns: nil while the upgrade is in progress.
    mutating func receive(_ input: inout ByteBuffer, output: inout ByteBuffer) throws -> Upgraded? {
        if case .security(var negotiation, var noise) = state {
            let agreed = try negotiation.receive(&input, output: &output) { $0 == Self.security }
            state = .security(negotiation, noise)
            guard agreed != nil else { return nil }
            try noise.start(&output)
            state = .handshake(noise)
            stepsDone = 1
        }
        if case .handshake(var noise) = state {
            let secured = try noise.receive(&input, output: &output)
            state = .handshake(noise)
            guard var secured else { return nil }
            let negotiation = Self.negotiation(role, Self.muxer)
            var opening = negotiation.opening
            output.writeImmutableBuffer(secured.transport.seal(&opening))
            state = .muxer(negotiation, secured, plain: ByteBuffer())
            stepsDone = 2
        }
        if case .muxer(var negotiation, var secured, var plain) = state {
            plain.writeImmutableBuffer(try secured.transport.open(&input))
            var answers = ByteBuffer()
            let agreed = try negotiation.receive(&plain, output: &answers) { $0 == Self.muxer }
            output.writeImmutableBuffer(secured.transport.seal(&answers))
            guard agreed == nil else { return Upgraded(peer: secured.peer, transport: secured.transport, plain: plain) }
            state = .muxer(negotiation, secured, plain: plain)
        }
        return nil
    }

    private static func negotiation(_ role: NoiseHandshake.Role, _ id: String) -> MultistreamNegotiation {
        role == .initiator ? MultistreamNegotiation(proposing: [id]) : .responder()
    }
}
