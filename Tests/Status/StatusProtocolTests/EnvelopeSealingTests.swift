import Core
import StatusProtocol
import Testing
import Waku
import WakuCrypto

@Suite struct EnvelopeSealingTests {
    /// Everyone who forwards a message can change its version, which the message hash does not cover. Such a copy counts as the message itself for
    /// everything that leaves out repetitions.
    @Test(arguments: [0, 2, UInt32.max])
    func aCopyWithAnotherVersionIsTheMessageItself(version: UInt32) throws {
        let (recipient, signer) = (PrivateKey.generate(), PrivateKey.generate())
        for target in [Recipient.partitioned(recipient.publicKey), .topic("topic", KeyDerivation.topicKey("topic"))] {
            let message = try #require(EnvelopeSealing.seal([1, 2, 3], to: target, wakuSigner: signer, at: .now()).first)
            var copy = message
            copy.version = version
            #expect(copy.hash(on: .statusDefault) == message.hash(on: .statusDefault))
            let opened = try EnvelopeSealing.open(copy, identity: recipient, topicKeys: [KeyDerivation.topicKey("topic")])
            #expect(opened.data == [1, 2, 3] && opened.signer == signer.publicKey)
        }
    }
}
