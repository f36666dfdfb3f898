import Core
import StatusProtocol
import Synchronization
import WakuCrypto

@testable import PushClient

/// The sealed registrations, by the bytes that represent them.
final class SealedRegistrations: Sendable {
    private let book = Mutex<[[UInt8]: (owner: PublicKey, registration: PushNotificationRegistration)]>([:])

    func seal(_ registration: PushNotificationRegistration, by owner: PublicKey) -> [UInt8] {
        book.withLock { book in
            let nonce = withUnsafeBytes(of: UInt64(book.count).bigEndian, Array.init)
            book[nonce] = (owner, registration)
            return nonce
        }
    }

    func open(_ sealed: [UInt8]) -> (owner: PublicKey, registration: PushNotificationRegistration)? {
        book.withLock { $0[sealed] }
    }
}

/// Plain values instead of signed and encrypted bytes. They are used only by participants that could read or sign the real ones.
struct ValueCryptography: ClientCryptography {
    let publicKey: PublicKey
    let sealed: SealedRegistrations

    func makeAccessToken() -> AccessToken { AccessToken(hexString(randomBytes(16))) }

    static func grant(by owner: PublicKey, for server: PublicKey, accessToken: AccessToken) -> [UInt8] {
        Array(owner.x.prefix(8)) + Array(server.x.prefix(8)) + accessToken.bytes
    }

    func makeGrant(for server: PublicKey, accessToken: AccessToken) -> [UInt8] {
        Self.grant(by: publicKey, for: server, accessToken: accessToken)
    }

    func isValidGrant(_ grant: [UInt8], by registrant: PublicKey, for server: PublicKey, accessToken: AccessToken) -> Bool {
        grant == Self.grant(by: registrant, for: server, accessToken: accessToken)
    }

    func seal(_ registration: PushNotificationRegistration, for server: PublicKey) -> [UInt8] {
        sealed.seal(registration, by: publicKey)
    }

    func seal(_ accessToken: AccessToken, for contact: PublicKey) -> [UInt8] {
        Array(publicKey.x.prefix(8)) + Array(contact.x.prefix(8)) + accessToken.bytes
    }

    func accessToken(in list: [[UInt8]], of registrant: PublicKey) -> AccessToken? {
        let mark = Array(registrant.x.prefix(8)) + Array(publicKey.x.prefix(8))
        return list.first { $0.starts(with: mark) }.map { AccessToken(bytes: Array($0.dropFirst(16))) }
    }
}
