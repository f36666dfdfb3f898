import TestSupport
import Testing
import WakuCrypto

@testable import LibP2P
import Core

@Suite struct PeerIDTests {
    /// libp2p/specs, peer-ids, test vectors.
    private static let ed25519Private = hex(
        """
        080112407e0830617c4a7de83925dfb2694556b12936c477a0e1feb2e148ec9da60fee7d
        1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e
        """)
    private static let ed25519Public = hex("080112201ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e")
    private static let secp256k1Private = hex("0802122053DADF1D5A164D6B4ACDB15E24AA4C5B1D3461BDBD42ABEDB0A4404D56CED8FB")
    private static let secp256k1Public = hex("08021221037777e994e452c21604f91de093ce415f5432f701dd8cd1a7a6fea0e630bfca99")
    private static let ecdsaPublic = hex(
        """
        0803125b3059301306072a8648ce3d020106082a8648ce3d03010703420004de3d300fa36ae0e8f5d530899d83abab44abf3161f162a4bc901d8e6ecda020e
        8b6d5f8da30525e71d6851510c098e5c47c646a597fb4dcec034e9f77c409e62
        """)

    @Test(arguments: [(ed25519Private, ed25519Public), (secp256k1Private, secp256k1Public)])
    func keysAreReadAndWrittenAsPublished(secret: [UInt8], known: [UInt8]) throws {
        let key = try NodeKey(parsing: secret)
        #expect(key.publicKey.encoded() == known)
        #expect(key.encoded().withBytes { Array($0) } == secret)
        #expect(key.publicKey == (try NodePublicKey(parsing: known)))
        #expect(key.peerID.publicKey == key.publicKey)
    }

    @Test func olderEd25519KeysRepeatTheirPublicPart() throws {
        let seedAndPoint = Self.ed25519Private.dropFirst(4)
        let older = [8, 1, 0x12, 96] + seedAndPoint + seedAndPoint.suffix(32)
        #expect(try NodeKey(parsing: older).publicKey.encoded() == Self.ed25519Public)
        var unequal = Array(older)
        unequal[unequal.count - 1] ^= 1
        #expect(throws: IdentityError.malformedKey) { try NodeKey(parsing: unequal) }
    }

    /// The ids and CIDs were made by py-libp2p and py-multibase.
    @Test(arguments: [
        (ed25519Public, "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq"),
        (secp256k1Public, "16Uiu2HAmLhLvBoYaoZfaMUKuibM6ac163GwKY74c5kiSLg5KvLpY"),
    ])
    func peerIDsHaveTheirTexts(known: [UInt8], text: String) throws {
        let peer = PeerID(try NodePublicKey(parsing: known))
        #expect(peer.description == text)
        #expect(try PeerID(text) == peer)
        #expect(try PeerID(peer.cid) == peer)
        #expect(try PeerID("z" + Base58.encode([1, 0x72] + peer.bytes)) == peer)
        #expect(try PeerID(parsing: peer.bytes) == peer)
    }

    /// libp2p/specs, peer-ids: one id in both forms.
    @Test func hashedPeerIDHasBothTexts() throws {
        let peer = try PeerID("QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N")
        #expect(peer.cid == "bafzbeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxe")
        #expect(peer.publicKey == nil)
        #expect(try PeerID(peer.cid) == peer)
    }

    /// Of RSA and ECDSA keys only hashes are accepted, as ids of other nodes.
    @Test func otherTypesOfKeysAreRefused() {
        for type in [0, 3] as [UInt8] {
            let key = [8, type] + Self.ecdsaPublic.dropFirst(2)
            #expect(throws: IdentityError.unsupportedKey) { try NodePublicKey(parsing: key) }
            #expect(throws: IdentityError.unsupportedKey) { try NodeKey(parsing: key) }
        }
    }

    @Test(arguments: [
        "", "1", "Qm", "16Uiu2HAmLhLvBoYaoZfaMUKuibM6ac163GwKY74c5kiSLg5KvLp", "16Uiu2HAmLhLvBoYaoZfaMUKuibM6ac163GwKY74c5kiSLg5KvLp0", "b",
        "bafybeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxe", String(repeating: "1", count: 10_000),
    ])
    func invalidPeerIDsAreRefused(text: String) {
        #expect(throws: IdentityError.malformedPeerID) { try PeerID(text) }
    }

    @Test(arguments: [NodeKey.Algorithm.secp256k1, .ed25519])
    func signaturesHoldForTheirMessageAlone(algorithm: NodeKey.Algorithm) {
        let key = NodeKey.generate(algorithm)
        let signature = key.signature(of: [1, 2, 3])
        #expect(key.publicKey.isValid(signature, of: [1, 2, 3]))
        #expect(!key.publicKey.isValid(signature, of: [1, 2, 4]))
        #expect(!NodeKey.generate(algorithm).publicKey.isValid(signature, of: [1, 2, 3]))
        #expect(!key.publicKey.isValid([], of: [1, 2, 3]))
        var altered = signature
        altered[20] ^= 1
        #expect(!key.publicKey.isValid(altered, of: [1, 2, 3]))
        #expect("\(key)" == "<redacted>")
    }

    @Test func damagedKeysTrapNothing() {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<2_000 {
            for bytes in [Self.ed25519Private, Self.secp256k1Private, Self.ecdsaPublic, Self.secp256k1Public] {
                let damaged = random.damaged(bytes)
                _ = try? NodeKey(parsing: damaged)
                if let key = try? NodePublicKey(parsing: damaged) {
                    #expect((try? NodePublicKey(parsing: key.encoded())) == key)
                    #expect(!key.isValid(damaged, of: damaged))
                }
                _ = try? PeerID(parsing: damaged)
            }
        }
    }
}
