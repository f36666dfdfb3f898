import NIOCore
import WakuCrypto

/// libp2p's `/noise` handshake: authenticates both peers and derives transport keys. Bytes go in and out; the caller enforces a timeout.
///
/// Each message is prefixed with its length in two bytes, big-endian. The initiator verifies the responder's identity before it sends its own, and
/// sends nothing to a node other than the expected one.
struct NoiseUpgrade {
    /// The maximum length of a handshake message: enough for any identity key with its signature and extensions.
    static let messageLimit = 4_096

    struct Secured {
        let peer: PeerID
        var transport: NoiseTransport
    }

    private var handshake: NoiseHandshake
    private let identity: NoiseIdentity
    private let expected: PeerID?

    init(_ role: NoiseHandshake.Role, identity: NoiseIdentity, expecting expected: PeerID?) {
        handshake = NoiseHandshake(role: role, staticKey: identity.staticKey)
        self.identity = identity
        self.expected = expected
    }

    /// Appends the bytes to send before anything is received.
    mutating func start(_ output: inout ByteBuffer) throws(NoiseError) {
        if handshake.role == .initiator { try send([], &output) }
    }

    /// Consumes complete messages from the front of `input` until the handshake is complete: the remaining bytes belong to the transport.
    ///
    /// - Returns: nil while the handshake is in progress.
    mutating func receive(_ input: inout ByteBuffer, output: inout ByteBuffer) throws(NoiseError) -> Secured? {
        while let length = input.getInteger(at: input.readerIndex, as: UInt16.self) {
            guard length <= Self.messageLimit else { throw .tooLarge }
            guard input.readableBytes >= 2 + Int(length) else { return nil }
            input.moveReaderIndex(forwardBy: 2)
            let payload = try handshake.read(input.readBytes(length: Int(length)) ?? [])
            guard let remoteStatic = handshake.remoteStatic else {
                // The payload of the first message is not authenticated, and ignored.
                try send(identity.payload, &output)
                continue
            }
            let peer = try NoiseIdentity.peer(provenBy: payload, staticKey: remoteStatic)
            if let expected, expected != peer { throw .unexpectedPeer(peer) }
            if handshake.role == .initiator { try send(identity.payload, &output) }
            let keys = handshake.split()
            return Secured(peer: peer, transport: NoiseTransport(send: keys.send, receive: keys.receive))
        }
        return nil
    }

    private mutating func send(_ payload: [UInt8], _ output: inout ByteBuffer) throws(NoiseError) {
        let message = try handshake.write(payload: payload)
        output.writeInteger(UInt16(message.count))
        output.writeBytes(message)
    }
}
