package import WakuCrypto

/// Encrypts row contents: AES-256-GCM with a random 12-byte nonce in front; each ciphertext is bound to its row.
///
/// The row key is the storage key, which is derived from the identity; after a rotation it is derived from the storage key and a random salt that is
/// stored in the database.
public struct Sealer: Sendable {
    private let key: SymmetricKey
    /// Not changed by a rotation: rows are looked up by hashes under this key.
    private let lookUpKey: SymmetricKey
    /// Whether the look-up key is stored, because the database was moved to another identity since its rows were hashed.
    private let storesLookUpKey: Bool
    /// Whether the database has served several identities. Releases that serve one only must not open it: the key check is under another key then.
    private let hasIdentities: Bool

    private init(key: SymmetricKey, lookUpKey: SymmetricKey, storesLookUpKey: Bool, hasIdentities: Bool) {
        self.key = key
        self.lookUpKey = lookUpKey
        self.storesLookUpKey = storesLookUpKey
        self.hasIdentities = hasIdentities
    }

    /// - Parameters:
    ///   - storageKey: see ``storageKey(of:)``.
    ///   - salt: the salt of the latest rotation; nil before the first one.
    ///   - lookUpKey: the stored look-up key, encrypted with the row key; nil if it follows from the storage key.
    ///   - hasIdentities: whether the database has served several identities.
    package init(storageKey: SymmetricKey, salt: [UInt8]?, lookUpKey: [UInt8]? = nil, hasIdentities: Bool = false) {
        let key = salt.map { storageKey.derivedKey(salt: $0, purpose: "waku-push rows 1") } ?? storageKey
        // With a wrong storage key the key check fails too.
        let stored = lookUpKey.flatMap { try? AESGCM.openKey($0, key: key, layout: .nonceFirst, associatedData: Self.lookUpBinding) }
        self.init(
            key: key, lookUpKey: stored ?? storageKey.derivedKey(salt: [], purpose: "waku-push look-up 1"),
            storesLookUpKey: lookUpKey != nil, hasIdentities: hasIdentities)
    }

    package static let checkProperty = "storage key check"
    package static let saltProperty = "storage key salt"
    private static let lookUpProperty = "storage key look-up"
    private static let lookUpBinding = Array(lookUpProperty.utf8)

    /// The sealer of a database, from its properties.
    package static func stored(under storageKey: SymmetricKey) -> StoreCommand<Sealer> {
        let properties = StoreCommand<[[UInt8]?]>.each([saltProperty, lookUpProperty, StoreIdentities.property].map(Properties.property))
        return properties.map { found in
            Sealer(storageKey: storageKey, salt: found[0], lookUpKey: found[1], hasIdentities: found[2] != nil)
        }
    }

    /// The sealer after a rotation.
    ///
    /// - Parameters:
    ///   - storageKey: that of the identity to which the database belongs then.
    ///   - salt: random.
    ///   - isMoved: whether that is another identity than before.
    package func rotated(to storageKey: SymmetricKey, salt: [UInt8], isMoved: Bool) -> Sealer {
        Sealer(
            key: storageKey.derivedKey(salt: salt, purpose: "waku-push rows 1"), lookUpKey: lookUpKey,
            storesLookUpKey: storesLookUpKey || isMoved, hasIdentities: hasIdentities || isMoved)
    }

    /// The sealer of a database that takes over the rows of this one's, with the same hashes.
    func takingOver(_ source: Sealer) -> Sealer {
        Sealer(key: key, lookUpKey: source.lookUpKey, storesLookUpKey: source.storesLookUpKey, hasIdentities: source.hasIdentities)
    }

    /// The number of bytes by which sealing makes content longer: nonce and tag.
    package static let overhead = 28

    /// The sealer once the database serves several identities.
    var withIdentities: Sealer { Sealer(key: key, lookUpKey: lookUpKey, storesLookUpKey: storesLookUpKey, hasIdentities: true) }

    /// Stores the key check, and the look-up key unless it follows from the storage key.
    package var keyChanges: [Change] {
        let sealed = AESGCM.seal(lookUpKey, key: key, layout: .nonceFirst, associatedData: Self.lookUpBinding)
        return [
            Properties.set(Self.checkProperty, to: sealCheck()),
            storesLookUpKey ? Properties.set(Self.lookUpProperty, to: sealed) : Properties.remove(Self.lookUpProperty),
        ]
    }

    /// The storage key of an identity: the row key before the first rotation.
    package static func storageKey(of identity: PrivateKey) -> SymmetricKey {
        identity.derivedKey(purpose: "waku-push storage 1")
    }

    /// - Parameters:
    ///   - content: the plaintext.
    ///   - table: the row's table, which must have a sealed column.
    ///   - values: the values of `SealedColumn.binding`, in its order and of its kinds.
    public func seal(_ content: [UInt8], in table: Table, boundTo values: [Value]) -> Value {
        .bytes(AESGCM.seal(content, key: key, layout: .nonceFirst, associatedData: Self.associatedData(table, values)))
    }

    /// - Parameters: see ``seal(_:in:boundTo:)``.
    /// - Throws: `CryptoError` when the ciphertext was altered, belongs to another row, or was sealed with another key; ``UnexpectedValue`` when the
    ///   values are of other kinds.
    public func open(_ sealed: [UInt8], in table: Table, boundTo values: [Value]) throws -> [UInt8] {
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
        AESGCM.seal(Self.check, key: checkKey, layout: .nonceFirst)
    }

    package func opensCheck(_ sealed: [UInt8]) -> Bool {
        // Another node may store the other form while this one opens the database.
        [key, severalCheckKey].contains { (try? AESGCM.open(sealed, key: $0, layout: .nonceFirst)) == Self.check }
    }

    private var checkKey: SymmetricKey { hasIdentities ? severalCheckKey : key }
    private var severalCheckKey: SymmetricKey { key.derivedKey(salt: [], purpose: "waku-push check 2") }

    private static let check = Array("waku-push".utf8)
}

extension Sealer {
    /// A keyed hash of a secret for lookup columns: HMAC-SHA256(look-up key, table name ‖ 0 ‖ secret), 32 bytes. The key is derived from the
    /// identity, so that the database alone does not allow guesses to be verified.
    package func lookUpHash(of secret: [UInt8], in table: String) -> [UInt8] {
        lookUpKey.authenticationCode(of: Array(table.utf8) + [0] + secret)
    }

    /// Identifies the key of ``lookUpHash(of:in:)``. Databases of one identity have different ones if one of them was moved to it.
    package var lookUpKeyMark: Int64 { lookUpMark(of: [], in: Self.lookUpProperty) }

    /// The first 8 bytes of ``lookUpHash(of:in:)``, for columns by which rows are only counted.
    package func lookUpMark(of secret: [UInt8], in table: String) -> Int64 {
        lookUpHash(of: secret, in: table).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
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
