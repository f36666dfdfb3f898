import Core
package import SessionProtocol
import WakuCrypto

/// Parses `monitor.messages` requests and answers them as a storage server does.
package struct MonitorRequestVerifier: Sendable {
    private struct Refused: Error {
        let refusal: MonitorRefusal
        let reason: String

        init(_ refusal: MonitorRefusal, _ reason: String) {
            (self.refusal, self.reason) = (refusal, reason)
        }
    }

    private let signatures: SignatureVerifier?
    private let sodium: Sodium?

    /// - Parameter sodium: nil: verifies no signatures, and treats an entry with an Ed25519 key as a group with this key, because the conversion needs
    ///   libsodium.
    package init(sodium: Sodium?) {
        self.sodium = sodium
        signatures = sodium.map { SignatureVerifier(sodium: $0) }
    }

    /// - Parameter body: A dictionary, or a list of dictionaries.
    /// - Returns: The message part of the reply, the accepted accounts, and the number of refused entries.
    package func answer(_ body: [UInt8]) -> (reply: [UInt8], accepted: [AccountID], refused: Int) {
        guard let value = try? BencodeValue(parsing: body[...], maximumValueCount: body.count) else {
            return (Self.reply(Refused(.arguments, "not bencoded")).encoded(), [], 1)
        }
        guard let entries = value.list else {
            let (reply, account) = answer(value)
            return (reply.encoded(), account.map { [$0] } ?? [], account == nil ? 1 : 0)
        }
        let answers = entries.map(answer)
        let accepted = answers.compactMap(\.account)
        return (BencodeValue.list(answers.map(\.reply)).encoded(), accepted, entries.count - accepted.count)
    }

    private func answer(_ entry: BencodeValue) -> (reply: BencodeValue, account: AccountID?) {
        do throws(Refused) {
            return (.dictionary(["success": .integer(1)]), try account(of: entry))
        } catch {
            return (Self.reply(error), nil)
        }
    }

    private static func reply(_ refused: Refused) -> BencodeValue {
        .dictionary(["errcode": .integer(refused.refusal.code), "error": .text(refused.reason)])
    }

    private func account(of entry: BencodeValue) throws(Refused) -> AccountID {
        guard let fields = entry.dictionary else { throw Refused(.arguments, "not a dictionary") }
        let sessionKey = fields["P"]?.bytes.flatMap { try? Ed25519PublicKey(parsing: $0) }
        guard let account = account(fields, sessionKey) else { throw Refused(.pubkey, "exactly one of P and p is expected") }
        guard let wantsData = fields["d"]?.integer, 0...1 ~= wantsData else { throw Refused(.arguments, "d is 0 or 1") }
        let namespaces = (fields["n"]?.list ?? []).compactMap { $0.integer.flatMap { Int16(exactly: $0) } }
        guard !namespaces.isEmpty, namespaces.count == fields["n"]?.list?.count,
            zip(namespaces, namespaces.dropFirst()).allSatisfy({ $0 < $1 })
        else { throw Refused(.namespace, "n is not a list of namespaces") }
        guard let signedAt = fields["t"]?.integer, signedAt > 0 else { throw Refused(.timestamp, "t is missing") }
        guard let signature = fields["s"]?.bytes else { throw Refused(.signature, "s is missing") }
        var delegation = Delegation.none
        if let token = fields["T"]?.bytes.flatMap({ SubaccountToken(Array($0)) }), let by = fields["S"]?.bytes {
            delegation = .subaccount(token, signature: Confidential(Array(by)))
        }
        guard let signatures else { return account }
        let authority = SignedAuthority(
            account: account, sessionKey: sessionKey, delegation: delegation, signedAt: signedAt,
            signature: Confidential(Array(signature)))
        let form = SubscriptionForm(
            authority: authority, namespaces: namespaces, wantsData: wantsData == 1,
            device: SubscriberDevice(service: .firebase, token: "-"), encryptionKey: .random())
        do {
            try signatures.verify(form)
        } catch {
            throw Refused(.signature, error.message)
        }
        return account
    }

    private func account(_ fields: BencodeDictionary, _ sessionKey: Ed25519PublicKey?) -> AccountID? {
        switch (fields["P"], fields["p"]?.bytes) {
        case (.some, nil):
            guard let sessionKey else { return nil }
            guard let sodium else { return AccountID([3] + sessionKey.bytes) }
            return sodium.x25519Key(of: sessionKey).flatMap { AccountID([AccountID.sessionPrefix] + $0) }
        case (nil, .some(let bytes)): return AccountID(bytes)
        default: return nil
        }
    }
}
