import StatusProtocol
import WakuCrypto

/// The identity's cryptographic operations that the machines need. Simulations substitute plain values for signed and sealed bytes.
protocol ClientCryptography: Sendable {
    var publicKey: PublicKey { get }

    func makeAccessToken() -> AccessToken
    func makeGrant(for server: PublicKey, accessToken: AccessToken) -> [UInt8]
    func isValidGrant(_ grant: [UInt8], by registrant: PublicKey, for server: PublicKey, accessToken: AccessToken) -> Bool
    /// Encrypts the registration for the server, with a fresh nonce.
    func seal(_ registration: PushNotificationRegistration, for server: PublicKey) -> [UInt8]
    /// An entry of allowed_key_list.
    func seal(_ accessToken: AccessToken, for contact: PublicKey) -> [UInt8]
    /// Decrypts the token from this identity's entry; nil when there is none.
    func accessToken(in list: [[UInt8]], of registrant: PublicKey) -> AccessToken?
}

struct IdentityCryptography: ClientCryptography {
    let identity: PrivateKey

    var publicKey: PublicKey { identity.publicKey }

    func makeAccessToken() -> AccessToken { .random() }

    func makeGrant(for server: PublicKey, accessToken: AccessToken) -> [UInt8] {
        Grant.make(client: identity, server: server, accessToken: accessToken)
    }

    func isValidGrant(_ grant: [UInt8], by registrant: PublicKey, for server: PublicKey, accessToken: AccessToken) -> Bool {
        Grant.isValid(grant, client: registrant, server: server, accessToken: accessToken)
    }

    func seal(_ registration: PushNotificationRegistration, for server: PublicKey) -> [UInt8] {
        AESGCM.seal(registration.encoded(), key: identity.sharedKey(with: server), layout: .nonceFirst)
    }

    func seal(_ accessToken: AccessToken, for contact: PublicKey) -> [UInt8] {
        AESGCM.seal(accessToken.bytes, key: identity.sharedKey(with: contact), layout: .nonceFirst)
    }

    func accessToken(in list: [[UInt8]], of registrant: PublicKey) -> AccessToken? {
        guard !list.isEmpty else { return nil }
        let key = identity.sharedKey(with: registrant)
        return list.lazy
            .compactMap { try? AESGCM.open($0, key: key, layout: .nonceFirst) }
            .map(AccessToken.init(bytes:)).first(where: \.isUUID)
    }
}

extension AccessToken {
    static func random() -> AccessToken {
        var bytes = randomBytes(16)
        bytes[6] = bytes[6] & 0x0f | 0x40
        bytes[8] = bytes[8] & 0x3f | 0x80
        let digits = Array(hexString(bytes).utf8)
        let parts = [digits[0..<8], digits[8..<12], digits[12..<16], digits[16..<20], digits[20..<32]]
        return AccessToken(bytes: Array(parts.joined(separator: [UInt8(ascii: "-")])))
    }
}
