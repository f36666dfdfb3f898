package import WakuCrypto

/// Encrypts row contents: AES-256-GCM with a random 12-byte nonce in front; each ciphertext is bound to its row.
///
/// The row key is the storage key, which is derived from the identity; after a rotation it is derived from the storage key and a random salt that is
/// stored in the database.
package struct Sealer: Sendable {
    private let key: SymmetricKey
    /// Not changed by a rotation: rows are looked up by hashes under this key.
    private let lookUpKey: SymmetricKey

    /// - Parameters:
    ///   - storageKey: see ``storageKey(of:)``.
    ///   - salt: the salt of the latest rotation; nil before the first one.
    package init(storageKey: SymmetricKey, salt: [UInt8]?) {
        lookUpKey = storageKey.derivedKey(salt: [], purpose: "waku-push look-up 1")
        key = salt.map { storageKey.derivedKey(salt: $0, purpose: "waku-push rows 1") } ?? storageKey
    }

    /// The storage key of an identity: the row key before the first rotation.
    package static func storageKey(of identity: PrivateKey) -> SymmetricKey {
        identity.derivedKey(purpose: "waku-push storage 1")
    }

    /// - Parameters:
    ///   - content: the plaintext.
    ///   - table: the row's table, which must have a sealed column.
    ///   - values: the values of ``SealedColumn/binding``, in its order and of its kinds.
    package func seal(_ content: [UInt8], in table: Table, boundTo values: [Value]) -> Value {
        .bytes(AESGCM.seal(content, key: key, layout: .nonceFirst, associatedData: Self.associatedData(table, values)))
    }

    /// - Parameters: see ``seal(_:in:boundTo:)``.
    /// - Throws: `CryptoError` when the ciphertext was altered, belongs to another row, or was sealed with another key; ``UnexpectedValue`` when the
    ///   values are of other kinds.
    package func open(_ sealed: [UInt8], in table: Table, boundTo values: [Value]) throws -> [UInt8] {
        guard let bound = table.sealed?.associatedData(values) else { throw UnexpectedValue() }
        return try AESGCM.open(sealed, key: key, layout: .nonceFirst, associatedData: bound)
    }

    private static func associatedData(_ table: Table, _ values: [Value]) -> [UInt8] {
        guard let bound = table.sealed?.associatedData(values) else {
            preconditionFailure("contents of \(table.name) are bound to other values than the table declares")
        }
        return bound
    }

    /// A sealed constant. A store recognizes its key by whether this can be opened.
    package func sealCheck() -> [UInt8] {
        AESGCM.seal(Self.check, key: key, layout: .nonceFirst)
    }

    package func opensCheck(_ sealed: [UInt8]) -> Bool {
        (try? AESGCM.open(sealed, key: key, layout: .nonceFirst)) == Self.check
    }

    private static let check = Array("waku-push".utf8)
}

extension Sealer {
    /// A keyed hash of a secret for lookup columns: HMAC-SHA256(look-up key, table name ‖ 0 ‖ secret), 32 bytes. The key is derived from the
    /// identity, so that the database alone does not allow guesses to be verified.
    package func lookUpHash(of secret: [UInt8], in table: String) -> [UInt8] {
        lookUpKey.authenticationCode(of: Array(table.utf8) + [0] + secret)
    }

    /// - Parameters: see ``seal(_:in:boundTo:)``.
    package func seal(_ secret: SymmetricKey, in table: Table, boundTo values: [Value]) -> Value {
        .bytes(AESGCM.seal(secret, key: key, layout: .nonceFirst, associatedData: Self.associatedData(table, values)))
    }

    /// nil when the ciphertext was altered, belongs to another row, or was sealed with another key.
    package func openKey(_ sealed: [UInt8], in table: Table, boundTo values: [Value]) -> SymmetricKey? {
        guard let bound = table.sealed?.associatedData(values) else { return nil }
        return try? AESGCM.openKey(sealed, key: key, layout: .nonceFirst, associatedData: bound)
    }
}
