import NIOCore
import Core
import TestSupport
import Testing
import WakuCrypto

@testable import LibP2P

@Suite struct NoiseTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let source: String
        let prologue: String
        let initiatorStatic: String
        let initiatorEphemeral: String
        let responderStatic: String
        let responderEphemeral: String
        var hash: String?
        /// Payloads and messages, alternating from the initiator on; the first three are the handshake.
        let messages: [(String, String)]
        var testDescription: String { source }
    }

    /// Vectors published with other implementations: cacophony's vectors/cacophony.txt and snow's tests/vectors/snow.txt.
    private static let vectors = [
        Vector(
            source: "cacophony", prologue: "4a6f686e2047616c74",
            initiatorStatic: "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
            initiatorEphemeral: "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
            responderStatic: "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
            responderEphemeral: "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
            hash: "c8e5f64e846193be2a834104c2a009868d6c9f3bd3c186299888b488b2f1f58e",
            messages: [
                (
                    "4c756477696720766f6e204d69736573",
                    "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69736573"
                ),
                (
                    "4d757272617920526f746862617264",
                    """
                    95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f14480884381cbad1f276e038c48378ffce2b65285e08d6b68aaa3629a5a8639392490e5b9
                    bd5269c2f1e4f488ed8831161f19b7815528f8982ffe09be9b5c412f8a0db50f8814c7194e83f23dbd8d162c9326ad
                    """
                ),
                (
                    "462e20412e20486179656b",
                    """
                    c7195ffacac1307ff99046f219750fc47693e23c3cb08b89c2af808b444850a80ae475b9df0f169ae80a89be0865b57f58c9fea0d4ec82a286427402f113e4b6
                    ae769a1d95941d49b25030
                    """
                ),
                ("4361726c204d656e676572", "96763ed773f8e47bb3712f0e29b3060ffc956ffc146cee53d5e1df"),
                ("4a65616e2d426170746973746520536179", "3e40f15f6f3a46ae446b253bf8b1d9ffb6ed9b174d272328ff91a7e2e5c79c07f5"),
                (
                    "457567656e2042f6686d20766f6e2042617765726b",
                    "eb3f3515110702e047a6c9da4478b6ead94873c11c0f2d710ddb3f09fce024b3a58502ae3f"
                ),
            ]),
        Vector(
            source: "snow",
            prologue: "5468657265206973206e6f20726967687420616e642077726f6e672e2054686572652773206f6e6c792066756e20616e6420626f72696e672e",
            initiatorStatic: "7dec208517a3b81a2861d7a71266d5d6dc944c5a8816634a86fe63198a0148ee",
            initiatorEphemeral: "a32daf21e93c0131495ce1d903181fde81cc46937daaeb990bae7c992709421e",
            responderStatic: "4d0aed5098e3b4ef20357e9f686ce66204c792b358da2e475017d6c485304881",
            responderEphemeral: "4eece0f195d026db035ff987597c429d3ad3bcc2944df37d649528951b2a27c5",
            messages: [
                (
                    "d03c489139e645d0711a3c9e810d776b46a84912463fafa87b884eebf242dc34",
                    """
                    f9fa868ba97ab8a2686deccfaad5a484ee10a5bb85e3d1dce015a84797f92818d03c489139e645d0711a3c9e810d776b46a84912463fafa87b884eebf242dc34
                    """
                ),
                (
                    "d8190a92f7dc0c93dbea9118ba8055751fb7c6590c416ffbd419964132b99a85",
                    """
                    8c4e6fdb7d09d501a86f7eca5c234522751706ed409182c05cdf5f827d4dae47b81c6c5f43b025692c24391eefee725c17d8cb0fbe3e4abb8aedf42c4fd2592d
                    4ea48ac08989d6ae8b4adae08b2c34087c808c7aa55a63c02b0fab9e930612336bd43eaea04d3c670a0a146691aa9cc9d357872320dc735dbc48580cffb553db
                    """
                ),
                (
                    "77891b19dcb92ef7c055b672c4a5aa7fdf1c84146b8b303459022729473ce254",
                    """
                    933ca6b5ed60df3df66121f0ab49a09e49efa45c613a86a3cecbf4c535cef2f83f72b42837b18e3572f2fdc2b74c331e2368a545cef54bdca081678ab0e9dd53
                    48122459e0c034c851984d88ce610963d43cde6cfe73a67fbd5a63e8bfca96d0
                    """
                ),
                (
                    "d7efdf988072881941db045a42882433817555128fbf5663e56081712ec7d212",
                    "54ef0ff0629e1aaa7685a2806ab111cba76b52331f2642276736f415868eacb69ab2577f3bda0cbf72f879685f6ed25f"
                ),
                (
                    "dd7bf01a588bafb52c6cfba952e5d8fe35cc2b3f92b4730ae2474615157345ce",
                    "356be70f110306d5c699bb834bb9d58d909e325924dfbec972e406e6f294dc63e1daebefe8a62a334facc8048ab4ad66"
                ),
            ]),
    ]

    @Test(arguments: vectors)
    func messagesAreAsPublished(_ vector: Vector) throws {
        func side(_ role: NoiseHandshake.Role, _ staticKey: String, _ ephemeral: String) throws -> NoiseHandshake {
            NoiseHandshake(
                role: role, staticKey: try #require(X25519PrivateKey(bytes: hex(staticKey))),
                ephemeralKey: try #require(X25519PrivateKey(bytes: hex(ephemeral))), prologue: hex(vector.prologue))
        }
        var initiator = try side(.initiator, vector.initiatorStatic, vector.initiatorEphemeral)
        var responder = try side(.responder, vector.responderStatic, vector.responderEphemeral)
        for (index, (payload, message)) in vector.messages.prefix(3).enumerated() {
            let written = try index == 1 ? responder.write(payload: hex(payload)) : initiator.write(payload: hex(payload))
            #expect(written == hex(message))
            #expect(try index == 1 ? initiator.read(written) == hex(payload) : responder.read(written) == hex(payload))
        }
        #expect(initiator.isComplete && responder.isComplete && initiator.hash == responder.hash)
        if let known = vector.hash { #expect(initiator.hash == hex(known)) }
        let (initiators, responders) = (initiator.split(), responder.split())
        for (index, (payload, message)) in vector.messages.enumerated().dropFirst(3) {
            // Each side counts its own messages: the fourth is the responder's first, the fifth the initiator's.
            let counter = UInt64((index - 3) / 2)
            let (sender, receiver) = index.isMultiple(of: 2) ? (initiators, responders) : (responders, initiators)
            let written = ChaCha20Poly1305(key: sender.send, direction: .seal).seal(hex(payload), counter: counter, associatedData: [])
            #expect(written == hex(message))
            let read = try ChaCha20Poly1305(key: receiver.receive, direction: .open).open(written, counter: counter, associatedData: [])
            #expect(read == hex(payload))
        }
    }

    // MARK: libp2p's handshake

    private let initiatorKey = NodeKey.generate()
    private let responderKey = NodeKey.generate(.ed25519)

    private func exchange(
        expecting expected: PeerID?, alter: (Int, inout ByteBuffer) -> Void = { _, _ in }
    ) throws -> (initiator: NoiseUpgrade.Secured, responder: NoiseUpgrade.Secured) {
        var initiator = NoiseUpgrade(.initiator, identity: NoiseIdentity(initiatorKey), expecting: expected)
        var responder = NoiseUpgrade(.responder, identity: NoiseIdentity(responderKey), expecting: nil)
        var (toResponder, toInitiator) = (ByteBuffer(), ByteBuffer())
        try initiator.start(&toResponder)
        alter(0, &toResponder)
        #expect(try responder.receive(&toResponder, output: &toInitiator) == nil)
        alter(1, &toInitiator)
        let one = try #require(try initiator.receive(&toInitiator, output: &toResponder))
        alter(2, &toResponder)
        let other = try #require(try responder.receive(&toResponder, output: &toInitiator))
        return (one, other)
    }

    @Test func bothSidesAuthenticateEachOther() throws {
        var (initiator, responder) = try exchange(expecting: responderKey.peerID)
        #expect(initiator.peer == responderKey.peerID)
        #expect(responder.peer == initiatorKey.peerID)
        // Larger than a frame, in both directions, whole and in pieces.
        let data = randomBytes(200_000)
        var plain = ByteBuffer(bytes: data)
        var sealed = initiator.transport.seal(&plain)
        #expect(sealed.readableBytes == 200_000 + 4 * 18)
        #expect(Array(buffer: try responder.transport.open(&sealed)) == data)
        plain = ByteBuffer(bytes: data.prefix(1_000))
        let frame = responder.transport.seal(&plain)
        var received = ByteBuffer()
        var opened = ByteBuffer()
        for byte in frame.readableBytesView {
            received.writeInteger(byte)
            opened.writeImmutableBuffer(try initiator.transport.open(&received))
        }
        #expect(Array(buffer: opened) == Array(data.prefix(1_000)))
    }

    @Test func anUnexpectedPeerDoesNotLearnTheInitiatorsIdentity() throws {
        var initiator = NoiseUpgrade(.initiator, identity: NoiseIdentity(initiatorKey), expecting: initiatorKey.peerID)
        var responder = NoiseUpgrade(.responder, identity: NoiseIdentity(responderKey), expecting: nil)
        var (toResponder, toInitiator) = (ByteBuffer(), ByteBuffer())
        try initiator.start(&toResponder)
        _ = try responder.receive(&toResponder, output: &toInitiator)
        toResponder.clear()
        #expect(throws: NoiseError.unexpectedPeer(responderKey.peerID)) {
            _ = try initiator.receive(&toInitiator, output: &toResponder)
        }
        #expect(toResponder.readableBytes == 0)
    }

    @Test(arguments: [(0, 10), (1, 10), (1, 60), (1, 150), (2, 10), (2, 100)])
    func alteredMessagesEndTheHandshake(message: Int, byte: Int) {
        #expect(throws: NoiseError.self) {
            _ = try exchange(expecting: nil) { index, buffer in
                let position = buffer.readerIndex + byte
                guard index == message, let value = buffer.getInteger(at: position, as: UInt8.self) else { return }
                buffer.setInteger(value ^ 1, at: position)
            }
        }
    }

    @Test func largeMessagesEndTheHandshakeAtOnce() {
        var responder = NoiseUpgrade(.responder, identity: NoiseIdentity(responderKey), expecting: nil)
        var input = ByteBuffer(bytes: [0x10, 0x01])
        var output = ByteBuffer()
        #expect(throws: NoiseError.tooLarge) { _ = try responder.receive(&input, output: &output) }
    }

    @Test func shortMessagesAreTruncated() {
        var responder = NoiseUpgrade(.responder, identity: NoiseIdentity(responderKey), expecting: nil)
        var input = ByteBuffer(bytes: [0, 3, 1, 2, 3])
        var output = ByteBuffer()
        #expect(throws: NoiseError.truncated) { _ = try responder.receive(&input, output: &output) }
    }

    @Test func identityMustBeProven() throws {
        let identity = NoiseIdentity(initiatorKey)
        let point = identity.staticKey.publicKey
        #expect(try NoiseIdentity.peer(provenBy: identity.payload, staticKey: point) == initiatorKey.peerID)
        var other = point
        other[0] ^= 1
        #expect(throws: NoiseError.invalidIdentity) { try NoiseIdentity.peer(provenBy: identity.payload, staticKey: other) }
        var foreign = ProtobufWriter()
        foreign.field(1, responderKey.publicKey.encoded())
        foreign.field(2, initiatorKey.signature(of: Array("noise-libp2p-static-key:".utf8) + point))
        #expect(throws: NoiseError.invalidIdentity) { try NoiseIdentity.peer(provenBy: foreign.bytes, staticKey: point) }
        #expect(throws: NoiseError.invalidIdentity) { try NoiseIdentity.peer(provenBy: [], staticKey: point) }
        var random = SeededGenerator(seed: 3)
        for _ in 0..<1_000 {
            let damaged = random.damaged(identity.payload)
            guard let peer = try? NoiseIdentity.peer(provenBy: damaged, staticKey: point) else { continue }
            #expect(peer == initiatorKey.peerID)
        }
    }

    @Test func alteredAndRepeatedFramesAreRefused() throws {
        var (initiator, responder) = try exchange(expecting: nil)
        var plain = ByteBuffer(string: "one")
        let frame = initiator.transport.seal(&plain)
        var altered = frame
        altered.setInteger(try #require(frame.getInteger(at: 4, as: UInt8.self)) ^ 1, at: 4)
        #expect(throws: NoiseError.authenticationFailed) { try responder.transport.open(&altered) }
        var again = frame
        again.writeImmutableBuffer(frame)
        #expect(throws: NoiseError.authenticationFailed) { try responder.transport.open(&again) }
        var short = ByteBuffer(bytes: [0, 15] + [UInt8](repeating: 0, count: 15))
        #expect(throws: NoiseError.truncated) { try responder.transport.open(&short) }
    }
}
