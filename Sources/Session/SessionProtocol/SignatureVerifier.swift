import WakuCrypto

/// Verifies the signatures of requests. Only valid requests reach the store.
package struct SignatureVerifier: Sendable {
    /// The key of the hash that derives a subkey.
    private static let subkeyLabel = Array("OxenSSSubkey".utf8)

    private let sodium: Sodium

    package init(sodium: Sodium) {
        self.sodium = sodium
    }

    /// - Throws: ``RequestError/Code/error``, which names the invalid field.
    package func verify(_ form: some SignedForm) throws(RequestError) {
        let signer = try signingKey(of: form.authority)
        guard sodium.isValid(form.authority.signature.value, of: form.signedText, by: signer) else {
            throw RequestError(.error, "signature: not valid")
        }
    }

    /// The key with which the text must be signed.
    private func signingKey(of authority: SignedAuthority) throws(RequestError) -> Ed25519PublicKey {
        let accountKey = try accountKey(of: authority)
        switch authority.delegation {
        case .none:
            return accountKey
        case .subaccount(let token, let signature):
            return try key(of: token, signature: signature.value, for: authority.account, signedBy: accountKey)
        case .subkey(let tag):
            // K = (c + H(c ‖ A))·A
            let hash = sodium.blake2b256(tag + accountKey.bytes, key: Self.subkeyLabel)
            guard let key = sodium.product(sodium.scalarSum(tag, hash), accountKey) else {
                throw RequestError(.error, "subkey_tag: does not give a valid key for this account")
            }
            return key
        }
    }

    private func accountKey(of authority: SignedAuthority) throws(RequestError) -> Ed25519PublicKey {
        let account = authority.account
        guard account.isSessionID else {
            guard let key = try? Ed25519PublicKey(parsing: account.key) else { throw RequestError(.error, "pubkey: not a valid key") }
            return key
        }
        // libsodium verifies with this key or multiplies it; both fail for invalid points and for points of small order.
        guard let key = authority.sessionKey, key.hasX25519Form(account.key) else {
            throw RequestError(.error, "session_ed25519: not the key of pubkey")
        }
        return key
    }

    private func key(
        of token: SubaccountToken, signature: [UInt8], for account: AccountID, signedBy accountKey: Ed25519PublicKey
    ) throws(RequestError) -> Ed25519PublicKey {
        guard token.hasZeroPadding else { throw RequestError(.error, "subaccount: bytes 2 and 3 are not 0") }
        guard token.flags.contains(.read) else { throw RequestError(.error, "subaccount: may not read") }
        guard token.prefix == account.prefix || token.flags.contains(.anyPrefix) else {
            throw RequestError(.error, "subaccount: for another network prefix")
        }
        guard sodium.isValid(signature, of: token.bytes, by: accountKey) else {
            throw RequestError(.error, "subaccount_sig: not signed by the account")
        }
        guard let key = token.key else { throw RequestError(.error, "subaccount: not a valid key") }
        return key
    }
}
