package import WakuCrypto

/// The identities that a database has served, as a property of the database. There is no entry in a database that has served one only.
package enum StoreIdentities {
    /// Compressed public keys, one after the other.
    static let property = "identities"
    private static let keyByteCount = 33

    /// All of them; empty if there was one only. Rows without a mark belong to the first.
    package static func all() -> StoreCommand<[PublicKey]> {
        Properties.property(property).map { bytes in
            guard let bytes else { return [] }
            return stride(from: 0, to: bytes.count, by: keyByteCount).compactMap { start in
                try? PublicKey(parsing: Array(bytes[start..<min(start + keyByteCount, bytes.count)]))
            }
        }
    }

    /// Adds those that are missing. Earlier releases, which serve one identity only, refuse the database from then on.
    ///
    /// - Parameters:
    ///   - identities: several. The first is the one to which the database belongs.
    ///   - sealer: the store's sealer.
    package static func add(_ identities: [PublicKey], by sealer: Sealer) -> StoreCommand<Void> {
        all().then { known in
            let missing = identities.filter { !known.contains($0) }
            guard !missing.isEmpty else { return .done(()) }
            return .change(set(known + missing) + sealer.withIdentities.keyChanges)
        }
    }

    private static func set(_ identities: [PublicKey]) -> [Change] {
        [Properties.set(property, to: identities.flatMap(\.compressed))]
    }
}

/// The identity to which a database is moved by a rotation of its storage key.
package struct StoreMove: Sendable {
    let from: PublicKey
    let to: PublicKey
    let storageKey: SymmetricKey

    package init(from old: PrivateKey, to new: PrivateKey) {
        from = old.publicKey
        to = new.publicKey
        storageKey = Sealer.storageKey(of: new)
    }
}

extension Sealer {
    /// Set until no page of the database holds contents under the old key.
    package static let unfinishedRotationProperty = "storage key rotation unfinished"

    /// The changes of properties by a rotation.
    ///
    /// - Parameters:
    ///   - move: set if the database belongs to another identity then.
    ///   - sealer: the sealer after the rotation.
    package static func rotation(_ move: StoreMove?, salt: [UInt8], to sealer: Sealer) -> StoreCommand<Void> {
        let changes =
            sealer.keyChanges + [Properties.set(saltProperty, to: salt), Properties.set(unfinishedRotationProperty, to: [1])]
        guard let move else { return .change(changes) }
        return StoreIdentities.add([move.from, move.to], by: sealer).then { .change(changes) }
    }

    /// The sealer after a rotation of a store's key.
    ///
    /// - Parameters:
    ///   - storageKey: that of the identity to which the database belongs before.
    ///   - move: set if it belongs to another one then.
    package func rotated(under storageKey: SymmetricKey, _ move: StoreMove?, salt: [UInt8]) -> Sealer {
        rotated(to: move?.storageKey ?? storageKey, salt: salt, isMoved: move != nil)
    }
}
