import Core
import StatusProtocol
package import Storage

/// An access token that a record had, exported for another database of the same node: its keyed hash, the stored key hash of its account, and the time
/// in nanoseconds until which it is kept.
package typealias RetiredTokenExport = (token: [UInt8], keyHash: [UInt8], expiresAt: Int64)

/// Access tokens that records had. Senders use a token until a server refuses it: an account that got it meanwhile would get their notifications.
extension Records {
    /// As long as a tombstone that anyone can make.
    static let tokenRetirement = Duration.seconds(30 * 24 * 3600)
    /// The number of retired tokens that are kept of an account, the last ones: a client may register any number of tokens.
    static let retiredTokenLimit = 16

    private static let release = Mutation(V01Storage.accessToken, .delete(where: [.equal(V01Storage.token)]))
    private static let keep = Mutation(
        V01Storage.retiredToken, .upsert([V01Storage.token, V01Storage.keyHash, V01Storage.expiresAt]))
    private static let removeRetired = Mutation(V01Storage.retiredToken, .delete(where: [.idAmong]))
    private static let findRetired = Query(V01Storage.retiredToken, [V01Storage.keyHash], where: [.equal(V01Storage.token)])
    private static let findRetiredOf = Query(
        V01Storage.retiredToken, [.id], where: [.equal(V01Storage.keyHash)],
        order: [.descending(V01Storage.expiresAt), .descending(.id)])

    /// The token selects no record any more, and is kept for its account.
    ///
    /// - Parameter token: its keyed hash.
    static func retire(_ token: [UInt8], of keyHash: V01.KeyHash, at now: Timestamp) -> [Change] {
        let end = now + tokenRetirement
        return [release(.bytes(token)), keep(.bytes(token), .bytes(keyHash.stored), .integer(end.rawValue))]
    }

    /// Reads the account whose record has an access token, then the one whose record had it. In this order, because another node may retire the token
    /// between the reads.
    func holderReads(_ token: AccessToken, at server: ServerMark?) -> [Read] {
        [ownerRead(token, at: server), Self.findRetired(tokenHash(token, at: server))]
    }

    /// Whether an access token belongs to another account.
    ///
    /// - Parameter found: the results of ``holderReads(_:at:)``.
    static func isTaken(_ found: ArraySlice<[Storage.Row]>, from keyHash: V01.KeyHash) throws -> Bool {
        // A record that has the token comes first: a node of an earlier release, which knows no retired tokens, may have stored it.
        for rows in found {
            if let holder = try owner(rows) { return holder != keyHash }
        }
        return false
    }

    /// Reads the retired tokens of an account beyond the last ones.
    static func surplusRead(_ keyHash: V01.KeyHash) -> Read {
        findRetiredOf.read([.bytes(keyHash.stored)], limit: 100, offset: retiredTokenLimit - 1)
    }

    /// Removes retired tokens, so that there is room for another one.
    ///
    /// - Parameter found: the result of ``surplusRead(_:)``.
    static func removeSurplus(_ found: [Storage.Row]) throws -> [Change] {
        found.isEmpty ? [] : [removeRetired(ids: try found.map { try $0.integer(0) })]
    }

    /// Retired tokens whose time is over.
    static let retiredTokens = ExpiredRows(V01Storage.retiredToken, by: V01Storage.expiresAt)

    // MARK: Export and import

    private static let findAllRetired = Query(
        V01Storage.retiredToken, [V01Storage.token, V01Storage.keyHash, V01Storage.expiresAt], order: [.ascending(.id)])

    /// Reads all retired tokens until `visit` returns false. Blocks, as the store's `scan` does.
    package static func forEachRetiredToken(in store: any Store, _ visit: (RetiredTokenExport) throws -> Bool) throws(StoreError) {
        try store.scan(findAllRetired()) { row in
            try visit((token: try row.bytes(0), keyHash: try row.bytes(1), expiresAt: try row.integer(2)))
        }
    }

    /// Stores a retired token unless it is stored already.
    ///
    /// - Returns: Whether it is stored now; false for a malformed key hash.
    package static func merge(_ retired: RetiredTokenExport) -> StoreCommand<Bool> {
        guard V01.KeyHash(stored: retired.keyHash) != nil else { return .done(false) }
        return .find(findRetired(.bytes(retired.token))) { rows in
            guard rows.isEmpty else { return .done(false) }
            return .change([keep(.bytes(retired.token), .bytes(retired.keyHash), .integer(retired.expiresAt))], true)
        }
    }
}
