import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct PKIXPublicKeyTests {
    // Keys and signatures of the byte 1, made by openssl.
    private static let p256: [UInt8] = hex(
        """
        3059301306072a8648ce3d020106082a8648ce3d03010703420004f46151fd0c9336613d5347b1a094c6b7182d7ac4aa6810a6c7624a6b9cbe2b26
        2a505bb7686fe388e62c433e75773680040fbb7731d0a8779c72c8d450da328b
        """)
    private static let p256Signature: [UInt8] = hex(
        """
        30450220773a3eaf5859de4ec4816cb070ff71b340509389b7c03802d6389d68032bf53a02210086f61c2ac66bcab741b6d578cf2a927647045492
        43911ece51752530aac6e311
        """)
    private static let p384: [UInt8] = hex(
        """
        3076301006072a8648ce3d020106052b8104002203620004668e45f9c08ce8ab047532070ad76e271fd9dbf0d39269d45313762a3f87ea403e9a82
        8cc7addbbc61d1e175772acbc915e4d78885f7910b8bfedd7158b8d44a746a91e464464f8b2f5a081ec3c03a3f80bdbce4f0fe95c2d2f40b68ae28
        f218
        """)
    private static let p384Signature: [UInt8] = hex(
        """
        3066023100a33a9e09bb4d4b1f2d7386bfacdb2cb06c0e4bd7ae0f7d3242fb091b325d105f5fc089c5209ad8ef11e4a313fc0a294b023100faee7d
        c9f1f05304905fff009cf787660ee4655cebe28811ebd84c0b30e9c4773608e5bd36b303b0d3ef05e87f22d174
        """)
    private static let p521: [UInt8] = hex(
        """
        30819b301006072a8648ce3d020106052b810400230381860004004fd49cfefb70bc5b840b5aae7cf5f946edfb08d74424d6fd6e0506a5bcded6a7
        08d6cc245b5ed0dfcad4913996f7d154cca12d96551165bac9fd0dbe68239f43e2004356fb728422adef18546b3e689a091eafe4072ca74eebf29f
        390cde6aa08a407496e64683d0803e99a0a4cbefe0038d82a360574dedfc5de9384f387a0d67bb20
        """)
    private static let p521Signature: [UInt8] = hex(
        """
        3081870241513a122831072ee89fa36ad275ab470bd573aa2a629dd8978300fb4800081cba37a113699226df3d211efe560f45bbe9ea7def36e7f6
        eb13bea3480f58751f45ed0242009edb5424d175760866ff7a619a7c36b563df01c2b0e917b75b6ddc892375eef2a19c8bdf451b5c499d9bffdd1a
        45bbc00ac4dfbc1982c0277f31d674f306e3d351
        """)
    private static let rsa: [UInt8] = hex(
        """
        30820122300d06092a864886f70d01010105000382010f003082010a0282010100c228579ccefaa3da7646674d623fc6ef59620987186e212271d6
        ae9edcb2bc2e140e28b52cd5266ea4ba5d53af05b6a2dc93d29431b5b85585d32acf2f308c0d2e775b9e93f7b7641a7342058b90bb84e9f57fef6b
        fb6de2d70022e35f5c7d341b2a0e2c25e82eae16a191977afde452a7cd6914f725b8986c616d3705252c59660fe4e3bb204ab687a3a950a87af079
        8f544c420d282193afeb148c86f81fdcf81fdbdf66e71b839fd9676a713617687f9605ffd0e4100f1512eaf6e31625c3e738734442ec9b7a8c79c3
        a9b3bd8867213e60e3212270eb6afa1413da08f28f9c71b53302ad6abd3d6dbf7411d53ea7a0a8f3095e94742096a2faefb339c21d0203010001
        """)
    private static let rsaSignature: [UInt8] = hex(
        """
        7369b2f41716c205c8f8ffc41dbbc8ab833b5ea06c39a89dba0f2d725fa28c0d787eb94597389fee16016c56fd4b383387032558758ca95f7456f6
        91d9020f9de92e8c8e436231596f767bb8a830957f5086899eb1f57049d8309ab49fb24af0b9801b82727691ba3d8e133909b74827d6c2f15c7aa2
        7d214c5c3b196fecb0fb023b06239a92b8338372d6c4e34432579faa97d62049b5436f291fe853a816bc2883b1c17db43c3dc39c5e1efa5caecda8
        ab2f9ffe52c5434a42c914ff8866ce2d858ae74d08bed8abad7b997cd94ad9f2c3cc23841f803cf893fc584765339152e753dedfd7d8db1364c06f
        04a540410cb8994a0847ba30b81aa0c3a7f96906
        """)
    /// P-256 by its parameters, instead of its name.
    private static let explicit: [UInt8] = hex(
        """
        3082014b3082010306072a8648ce3d02013081f7020101302c06072a8648ce3d0101022100ffffffff00000001000000000000000000000000ffff
        ffffffffffffffffffff305b0420ffffffff00000001000000000000000000000000fffffffffffffffffffffffc04205ac635d8aa3a93e7b3ebbd
        55769886bc651d06b0cc53b0f63bce3c3e27d2604b031500c49d360886e704936a6678e1139d26b7819f7e900441046b17d1f2e12c4247f8bce6e5
        63a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5022100ffffffff
        00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc63255102010103420004f46151fd0c9336613d5347b1a094c6b7182d7ac4aa6810a6
        c7624a6b9cbe2b262a505bb7686fe388e62c433e75773680040fbb7731d0a8779c72c8d450da328b
        """)
    private static let compressed: [UInt8] = hex(
        """
        3039301306072a8648ce3d020106082a8648ce3d03010703220003f46151fd0c9336613d5347b1a094c6b7182d7ac4aa6810a6c7624a6b9cbe2b26
        """)
    private static let p224: [UInt8] = hex(
        """
        304e301006072a8648ce3d020106052b81040021033a00047db2ce19e9141eb1ecaf8adaa8abcc42f057848fe4e6f5c7670778a0b61278543d544e
        76491f1de836acf7ab19f276b3afd34837da703b66
        """)
    private static let secp256k1: [UInt8] = hex(
        """
        3056301006072a8648ce3d020106052b8104000a034200041e83611cafff3ef5189e96f00a8222923e3e9755dd8acd7b740ec31bb3c573b208c1a6
        c30e75aac78c5e93d993b2343de4e0606ce6cf62bf1b186cfd68003ccb
        """)

    @Test(arguments: [
        (p256, p256Signature, PKIXPublicKey.Algorithm.ecdsa), (p384, p384Signature, .ecdsa), (p521, p521Signature, .ecdsa),
        (rsa, rsaSignature, .rsa),
    ])
    func signaturesAreVerified(bytes: [UInt8], signature: [UInt8], algorithm: PKIXPublicKey.Algorithm) throws {
        let key = try PKIXPublicKey(parsing: bytes, algorithm: algorithm)
        #expect(key.isValid(signature, of: [1]) && !key.isValid(signature, of: [2]) && !key.isValid([], of: [1]))
        for damaged in [bytes + [0], bytes.dropLast(), []] {
            #expect(throws: CryptoError.invalidKey) { try PKIXPublicKey(parsing: damaged, algorithm: algorithm) }
        }
    }

    @Test func pointsOutsideOfTheCurveAreRefused() {
        for bytes in [Self.p256, Self.p384, Self.p521] {
            var bytes = bytes
            bytes[bytes.count - 1] ^= 1
            #expect(PKIXPublicKey.hasExpectedForm(bytes, .ecdsa))
            #expect(throws: CryptoError.invalidKey) { try PKIXPublicKey(parsing: bytes, algorithm: .ecdsa) }
        }
    }

    /// With curves of its own and compressed points, a peer would choose how long parsing takes.
    @Test func keysThatLibcryptoParsesSlowlyDoNotReachIt() {
        for bytes in [Self.explicit, Self.compressed, Self.p224, Self.secp256k1, Self.rsa] {
            #expect(!PKIXPublicKey.hasExpectedForm(bytes, .ecdsa))
            #expect(throws: CryptoError.invalidKey) { try PKIXPublicKey(parsing: bytes, algorithm: .ecdsa) }
        }
        // The key says of what kind it is.
        for bytes in [Self.explicit, Self.compressed, Self.p256] {
            #expect(!PKIXPublicKey.hasExpectedForm(bytes, .rsa))
            #expect(throws: CryptoError.invalidKey) { try PKIXPublicKey(parsing: bytes, algorithm: .rsa) }
        }
    }

    private func rsaKey(exponent: [UInt8]) -> [UInt8] {
        func long(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
            [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
        }
        let numbers = long(2, Array(Self.rsa[32..<289])) + [2, UInt8(exponent.count)] + exponent
        return long(0x30, Array(Self.rsa[4..<19]) + long(3, [0] + long(0x30, numbers)))
    }

    @Test func longExponentsAreRefused() throws {
        #expect(rsaKey(exponent: [1, 0, 1]) == Self.rsa)
        _ = try PKIXPublicKey(parsing: rsaKey(exponent: [0, 255, 255, 255, 255]), algorithm: .rsa)
        #expect(throws: CryptoError.invalidKey) { try PKIXPublicKey(parsing: rsaKey(exponent: [1, 0, 0, 0, 1]), algorithm: .rsa) }
    }
}
