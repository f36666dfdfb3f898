package import WakuCrypto

/// Encrypts contents of rows: AES-256-GCM, 12 bytes of random nonce first, bound to the row.
///
/// The rows' key is the storage key, which comes from the identity, or after a rotation a key derived from it with a random salt that is kept
/// in the database.
package struct Sealer: Sendable {
    private let key: SymmetricKey
    /// The same before and after a rotation: rows are found by what it makes.
    private let lookUpKey: SymmetricKey

    /// - Parameters:
    ///   - storageKey: of the identity.
    ///   - salt: nil before the first rotation.
    package init(storageKey: SymmetricKey, salt: [UInt8]?) {
        lookUpKey = storageKey.derivedKey(salt: [], purpose: "waku-push look-up 1")
        key = salt.map { storageKey.derivedKey(salt: $0, purpose: "waku-push rows 1") } ?? storageKey
    }

    /// The key of an identity's store: see ``init(storageKey:salt:)``.
    package static func storageKey(of identity: PrivateKey) -> SymmetricKey {
        identity.derivedKey(purpose: "waku-push storage 1")
    }

    /// - Parameter binding: values of ``SealedColumn/binding``.
    package func seal(_ content: [UInt8], boundTo binding: [Value]) -> Value {
        .bytes(AESGCM.seal(content, key: key, layout: .nonceFirst, associatedData: SealedColumn.associatedData(binding)))
    }

    /// - Throws: `CryptoError` when it was altered, is another row's, or is sealed with another key.
    package func open(_ sealed: [UInt8], boundTo binding: [Value]) throws -> [UInt8] {
        try AESGCM.open(sealed, key: key, layout: .nonceFirst, associatedData: SealedColumn.associatedData(binding))
    }

    /// Known text, by which a store recognizes its key.
    package func sealCheck() -> [UInt8] {
        AESGCM.seal(Self.check, key: key, layout: .nonceFirst)
    }

    package func opensCheck(_ sealed: [UInt8]) -> Bool {
        (try? AESGCM.open(sealed, key: key, layout: .nonceFirst)) == Self.check
    }

    private static let check = Array("waku-push".utf8)
}

extension Sealer {
    /// What stands for a secret in a column that rows are looked up by: HMAC-SHA256(look-up key, name of the table ‖ 0 ‖ secret), 32 bytes. The key
    /// comes from the identity, so that the database alone does not tell whether a guess is right.
    package func lookUpHash(of secret: [UInt8], in table: String) -> [UInt8] {
        lookUpKey.authenticationCode(of: Array(table.utf8) + [0] + secret)
    }

    package func seal(_ secret: SymmetricKey, boundTo binding: [Value]) -> Value {
        .bytes(AESGCM.seal(secret, key: key, layout: .nonceFirst, associatedData: SealedColumn.associatedData(binding)))
    }

    /// nil when it was altered, is another row's, or is sealed with another key.
    package func openKey(_ sealed: [UInt8], boundTo binding: [Value]) -> SymmetricKey? {
        try? AESGCM.openKey(sealed, key: key, layout: .nonceFirst, associatedData: SealedColumn.associatedData(binding))
    }
}
