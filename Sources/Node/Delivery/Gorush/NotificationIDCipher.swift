import Core
package import WakuCrypto

/// Replaces the ids of notifications, for the profile `private`: without the node's key they cannot be told from random ones.
///
///     posted id = AES-256(key, id[0 ..< 16]) as a UUID: 8-4-4-4-12 lowercase digits
///     key       = HKDF-SHA256(identity, "waku-push notification id 1")
///
/// A delivery id is a hash of the registrant's key, the message id and the installation id: everyone who knows these three can recognize it.
/// The same notification has the same posted id at each of several nodes and in each attempt, so that a device shows it once. A failure that
/// gorush reports is matched by decryption: nothing is stored. The form tells posted ids from delivery ids, which are 32 digits.
package struct NotificationIDCipher: Sendable {
    private static let groups = [4, 2, 2, 2, 6]

    private let key: SymmetricKey

    package init(identity: PrivateKey) {
        key = identity.derivedKey(purpose: "waku-push notification id 1")
    }

    /// - Parameter id: a `DeliveryID.notificationID`; any other text, such as that of a test, is hashed first.
    package func postedID(of id: String) -> String {
        let block = DeliveryID.prefix(of: id) ?? Array(Shake256.hash64(Array(id.utf8)).prefix(AES256Block.byteCount))
        return Self.text(AES256Block.encrypt(block, key: key))
    }

    /// The prefix of the delivery id; nil for a text of another form.
    func deliveryPrefix(of postedID: String) -> [UInt8]? {
        let parts = postedID.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == Self.groups.map({ 2 * $0 }), let block = WakuCrypto.bytes(hex: parts.joined()),
            block.count == AES256Block.byteCount
        else { return nil }
        return AES256Block.decrypt(block, key: key)
    }

    /// A random id in the form of a posted one.
    static func randomID() -> String { text(randomBytes(AES256Block.byteCount)) }

    private static func text(_ bytes: [UInt8]) -> String {
        var rest = bytes[...]
        return groups.map { count in
            defer { rest = rest.dropFirst(count) }
            return hexString(rest.prefix(count))
        }.joined(separator: "-")
    }
}
