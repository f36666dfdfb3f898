import NIOCore
import WakuCrypto

/// The handshake of libp2p's `/noise`: who both are, and keys for what follows. Bytes go in and out; the caller keeps time.
///
/// Each message stands after its length in two bytes, big-endian. The initiator learns who answers before it says who it is, and says nothing to
/// another than the one that it expects.
struct NoiseUpgrade {
    /// Room for any identity key in use with its signature and extensions: far below what a length of two bytes allows.
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

    /// What is to be sent before anything is received.
    mutating func start(_ output: inout ByteBuffer) throws(NoiseError) {
        if handshake.role == .initiator { try send([], &output) }
    }

    /// Takes the messages that are there off the front of `input`, until both are known: what follows then is the transport's.
    ///
    /// - Returns: nil while the handshake goes on.
    mutating func receive(_ input: inout ByteBuffer, output: inout ByteBuffer) throws(NoiseError) -> Secured? {
        while let length = input.getInteger(at: input.readerIndex, as: UInt16.self) {
            guard length <= Self.messageLimit else { throw .tooLarge }
            guard input.readableBytes >= 2 + Int(length) else { return nil }
            input.moveReaderIndex(forwardBy: 2)
            let payload = try handshake.read(input.readBytes(length: Int(length)) ?? [])
            guard let remoteStatic = handshake.remoteStatic else {
                // The first message: of no use yet to know what its payload says.
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
