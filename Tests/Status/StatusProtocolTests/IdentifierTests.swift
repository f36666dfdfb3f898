import Core
import TestSupport
import Testing
import WakuCrypto

@testable import StatusProtocol

@Suite struct IdentifierTests {
    @Test(arguments: StatusGoVectors.recorded.keys)
    func hashesAndTopicStringsOfKeysAreTheRecordedOnes(_ recorded: StatusGoVectors.Key) throws {
        let key = try PublicKey(parsing: recorded.publicKey.bytes)
        let hash = KeyHash(of: key)
        #expect(hash.bytes == recorded.hashedPublicKey.bytes)
        #expect(Shake256.hash64(Array("0x\(key.hex)".utf8)) == recorded.authorHash.bytes)
        #expect(StatusTopics.personal(key) == recorded.personalTopic.string)
        #expect(StatusTopics.partitioned(key) == recorded.partitionedTopic.string)
        #expect(StatusTopics.query(hash) == recorded.queryTopic.string)
        #expect(StatusTopics.publishedQuery(hash) == "0x" + recorded.queryTopic.string)
        #expect(StatusTopics.contactCode(key) == recorded.contactCodeTopic.string)
    }

    @Test func grantsAreTheRecordedOne() throws {
        let vectors = StatusGoVectors.recorded
        let recorded = vectors.primitives.grant
        let client = try vectors.pair(recorded.client)
        let server = try vectors.pair(recorded.server).publicKey
        let token = AccessToken(recorded.accessToken)
        #expect(client.publicKey.compressed + server.compressed + token.bytes == recorded.material.bytes)
        #expect(Grant.digest(client: client.publicKey, server: server, accessToken: token) == recorded.digest.bytes)
        #expect(Grant.make(client: client, server: server, accessToken: token) == recorded.grant.bytes)
        #expect(Grant.isValid(recorded.grant.bytes, client: client.publicKey, server: server, accessToken: token))
    }

    @Test func aGrantIsForOneClientOneServerAndOneToken() {
        let client = PrivateKey.generate()
        let server = PrivateKey.generate().publicKey
        let other = PrivateKey.generate().publicKey
        let token = AccessToken("a-token")
        let grant = Grant.make(client: client, server: server, accessToken: token)
        #expect(Grant.isValid(grant, client: client.publicKey, server: server, accessToken: token))
        #expect(!Grant.isValid(grant, client: other, server: server, accessToken: token))
        #expect(!Grant.isValid(grant, client: client.publicKey, server: other, accessToken: token))
        #expect(!Grant.isValid(grant, client: client.publicKey, server: server, accessToken: AccessToken("A-token")))
    }

    @Test func aGrantIsSixtyFiveBytesThatEndInZeroToThree() {
        let client = PrivateKey.generate()
        let server = PrivateKey.generate().publicKey
        let token = AccessToken("a-token")
        let grant = Grant.make(client: client, server: server, accessToken: token)
        let v = grant[64]
        let wrongGrants: [[UInt8]] = [
            [], Array(grant.dropLast()), grant + [0], grant.dropLast() + [v + 27], grant.dropLast() + [v ^ 1], grant.dropLast() + [4],
        ]
        for wrong in wrongGrants {
            #expect(!Grant.isValid(wrong, client: client.publicKey, server: server, accessToken: token))
        }
    }

    @Test func aKeyHashHasSixtyFourBytes() {
        #expect(KeyHash(bytes: [UInt8](repeating: 1, count: 64)) != nil)
        for count in [0, 32, 63, 65, 128] { #expect(KeyHash(bytes: [UInt8](repeating: 1, count: count)) == nil) }
    }

    @Test func deliveriesAreTheSameForTheSameMessageAndDeviceAlone() throws {
        let one = KeyHash(of: PrivateKey.generate().publicKey)
        let two = KeyHash(of: PrivateKey.generate().publicKey)
        func id(_ message: [UInt8], _ hash: KeyHash, _ installation: String) -> DeliveryID {
            DeliveryID(messageID: message, key: RegistrationKey(keyHash: hash, installationID: InstallationID(installation)))
        }
        #expect(id([1, 2], one, "a") == id([1, 2], one, "a"))
        // Bytes moved from the message id to the installation id also change the delivery id.
        let all = [
            id([1, 2], one, "a"), id([1, 2], two, "a"), id([1, 3], one, "a"), id([1, 2], one, "b"), id([1], one, "\u{2}a"), id([], one, ""),
        ]
        #expect(Set(all).count == all.count)
        #expect(DeliveryID(bytes: all[0].bytes) == all[0])
        #expect(DeliveryID(bytes: Array(all[0].bytes.dropLast())) == nil)
        #expect(all[0].hex == hexString(all[0].bytes))
    }

    @Test func theDeliveryIDIsItsDocumentedDigest() throws {
        let hash = try #require(KeyHash(bytes: [UInt8](repeating: 7, count: 64)))
        let id = DeliveryID(messageID: [1, 2, 3], key: RegistrationKey(keyHash: hash, installationID: InstallationID("i")))
        #expect(id.bytes == SHA256.hash(hash.bytes + [0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3] + Array("i".utf8)))
    }
}
