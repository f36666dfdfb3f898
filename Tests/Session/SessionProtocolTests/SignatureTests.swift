@testable import SessionProtocol
import TestSupport
import Testing
import WakuCrypto

@Suite struct SignatureTests {
    private let verifier: SignatureVerifier
    private let vectors = SessionVectors.derived

    init() throws {
        verifier = SignatureVerifier(sodium: try Sodium.load())
    }

    private func error(_ sample: RequestSample) throws -> RequestError? {
        let form = try sample.subscription()
        return refusal { try verifier.verify(form) }
    }

    @Test func signedTextsAreThoseOfTheVectors() throws {
        #expect(try RequestSample.sessionID().subscription().signedText == Array(vectors.sessionId.monitorMessage.utf8))
        #expect(try RequestSample.group().subscription().signedText == Array(vectors.group03.monitorMessage.utf8))
        #expect(try RequestSample.sessionID().unsubscription().signedText == Array(vectors.unsubscribe.message.utf8))
    }

    @Test func sessionIDsAndGroupsAreVerified() throws {
        #expect(try error(.sessionID()) == nil)
        #expect(try error(.group()) == nil)
    }

    @Test func unsubscriptionIsVerified() throws {
        let sample = RequestSample.sessionID().with("signature", RequestSample.quoted(hexString(vectors.unsubscribe.signature.bytes)))
        let form = try sample.unsubscription()
        #expect(refusal { try verifier.verify(form) } == nil)
        let other = try RequestSample.sessionID().unsubscription()
        #expect(refusal { try verifier.verify(other) }?.message.hasPrefix("signature") == true)
    }

    @Test(arguments: [("sig_ts", "1677520761"), ("data", "false"), ("namespaces", "[0]")])
    func everythingThatIsSignedCounts(name: String, json: String) throws {
        let error = try error(RequestSample.sessionID().with(name, json))
        #expect(error?.code == .error && error?.message.hasPrefix("signature") == true)
    }

    @Test func sessionKeyMustBeThatOfTheSessionID() throws {
        let wrong = [
            hexString(vectors.sessionId.pubkey.bytes.dropFirst()), String(repeating: "ff", count: 32),
            "01" + String(repeating: "00", count: 31),
            hexString(vectors.group03.pubkey.bytes.dropFirst()),
        ]
        for digits in wrong {
            let error = try error(RequestSample.sessionID().with("session_ed25519", RequestSample.quoted(digits)))
            #expect(error?.code == .error && error?.message.hasPrefix("session_ed25519") == true)
        }
    }

    /// Keys whose X25519 forms are points of small order too. OpenSSL accepts one signature for many texts; libsodium refuses these keys.
    @Test(arguments: [
        // The points of orders 2 and 4 and one of order 8, and their forms.
        ("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", String(repeating: "00", count: 32)),
        (String(repeating: "00", count: 32), "01" + String(repeating: "00", count: 31)),
        (
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"
        ),
    ])
    func keysOfSmallOrderSignNothing(key: String, form: String) throws {
        let key = try Ed25519PublicKey(parsing: try #require(bytes(hex: key)))
        #expect(key.hasX25519Form(try #require(bytes(hex: form))))
        let signature: [UInt8] = [1] + [UInt8](repeating: 0, count: 63)
        let sample = RequestSample.sessionID()
            .with("pubkey", RequestSample.quoted("05" + form))
            .with("session_ed25519", RequestSample.quoted(hexString(key.bytes)))
            .with("signature", RequestSample.quoted(hexString(signature)))
        var validByOpenSSL = 0
        for time in 1_677_520_760..<1_677_520_860 {
            let sample = sample.with("sig_ts", "\(time)")
            if key.isValid(signature, of: try sample.subscription().signedText) { validByOpenSSL += 1 }
            #expect(try error(sample)?.code == .error)
            let subkey = RequestSample.quoted(String(repeating: "01", count: 32))
            #expect(try error(sample.with("subkey_tag", subkey))?.message.hasPrefix("subkey_tag") == true)
        }
        #expect(validByOpenSSL > 0)
    }

    @Test func subaccountsAreVerified() throws {
        #expect(try error(.subaccount(vectors.subaccount)) == nil)
        #expect(try error(.subaccount(vectors.subaccountAnyPrefix)) == nil)
    }

    @Test func subaccountWithoutReadIsRefused() throws {
        let error = try error(.subaccount(vectors.subaccountWithoutReadBitMustFail))
        #expect(error?.code == .error && error?.message.hasPrefix("subaccount") == true)
    }

    @Test func subaccountOfAnotherPrefixIsRefused() throws {
        let error = try error(.subaccount(vectors.subaccountWrongPrefixMustFail))
        #expect(error?.code == .error && error?.message.hasPrefix("subaccount") == true)
    }

    @Test func subaccountNotSignedByTheAccountIsRefused() throws {
        let zeros = RequestSample.quoted(String(repeating: "00", count: 64))
        let error = try error(RequestSample.subaccount(vectors.subaccount).with("subaccount_sig", zeros))
        #expect(error?.message.hasPrefix("subaccount_sig") == true)
    }

    @Test func subaccountWithPaddingThatIsNotZeroIsRefused() throws {
        var bytes = vectors.subaccount.subaccount.bytes
        bytes[3] = 1
        let error = try error(RequestSample.subaccount(vectors.subaccount).with("subaccount", RequestSample.quoted(hexString(bytes))))
        #expect(error?.code == .error && error?.message.hasPrefix("subaccount") == true)
    }

    @Test func accountsOwnSignatureDoesNotServeForASubaccount() throws {
        let own = RequestSample.quoted(hexString(vectors.group03.signature.bytes))
        #expect(try error(RequestSample.subaccount(vectors.subaccount).with("signature", own))?.message.hasPrefix("signature") == true)
    }

    @Test func publishedSubkeyTagIsVerified() throws {
        let vector = vectors.subkeyTagOld
        let sample = RequestSample.group().with("subkey_tag", RequestSample.quoted(hexString(vector.subkeyTag.bytes)))
        #expect(try error(sample.with("signature", RequestSample.quoted(hexString(vector.signature.bytes)))) == nil)
        #expect(try error(sample)?.code == .error)
    }

    @Test(arguments: SessionPublishedVectors.recorded.subkeys.indices)
    func subkeySumLosesItsCarry(index: Int) throws {
        let vector = SessionPublishedVectors.recorded.subkeys[index]
        let sample = RequestSample.sessionID()
            .with("pubkey", RequestSample.quoted(hexString(vector.pubkey.bytes)))
            .with("session_ed25519", RequestSample.quoted(hexString(vector.sessionEd25519.bytes)))
            .with("subkey_tag", RequestSample.quoted(hexString(vector.subkeyTag.bytes)))
            .with("namespaces", "[0,11]")
        #expect(try sample.subscription().signedText == Array(vector.monitorMessage.utf8))
        #expect(try error(sample.with("signature", RequestSample.quoted(hexString(vector.signature.bytes)))) == nil)
        if let kept = vector.signatureWithCarryKept {
            #expect(try error(sample.with("signature", RequestSample.quoted(hexString(kept.bytes))))?.code == .error)
        }
    }

    @Test func otherPrefixesFollowTheRulesOfGroups() throws {
        let key = try #require(Ed25519PrivateKey(seed: (0..<32).map { UInt8($0) }))
        for prefix: UInt8 in [0, 2, 4, 0x15, 0xFF] {
            let account = try #require(AccountID([prefix] + key.publicKey.bytes))
            let text = SubscriptionForm.signedText(of: account, signedAt: 1_677_520_760, wantsData: false, namespaces: [11])
            let sample = RequestSample.group().with("pubkey", RequestSample.quoted(account.hex))
            #expect(try error(sample.with("signature", RequestSample.quoted(hexString(key.signature(of: text))))) == nil)
            #expect(try error(sample)?.code == .error)
        }
    }
}
