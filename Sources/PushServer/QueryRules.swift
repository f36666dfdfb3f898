public import StatusProtocol
public import WakuCrypto

/// What a query is answered, `PROTOCOL.md` section 5.
public struct QueryRules: Sendable {
    /// One small query must not draw an answer without end: rows that would make it larger than this are left out.
    public static let answerByteLimit = 4 << 20

    private let serverKey: [UInt8]

    public init(server: PublicKey) {
        serverKey = server.compressed
    }

    /// Whom a query asks about, each once.
    public func registrants(in query: PushNotificationQuery) -> [KeyHash] {
        var seen: Set<KeyHash> = []
        return query.publicKeys.compactMap(KeyHash.init(bytes:)).filter { seen.insert($0).inserted }
    }

    /// nil when nothing is registered: then there is no answer.
    public func answer(_ registrations: [StoredRegistration], messageID: [UInt8]) -> PushNotificationQueryResponse? {
        var rows: [PushNotificationQueryInfo] = []
        var byteCount = 0
        for row in registrations.map(row) {
            byteCount += row.allowedKeyList.reduce(512) { $0 + $1.count + 4 }
            // One row always fits: a registration is no larger.
            if !rows.isEmpty, byteCount > Self.answerByteLimit { break }
            rows.append(row)
        }
        return rows.isEmpty ? nil : PushNotificationQueryResponse(info: rows, messageID: messageID)
    }

    /// The token, or the list of those who may have it: never both.
    private func row(_ stored: StoredRegistration) -> PushNotificationQueryInfo {
        let registration = stored.registration
        let isListed = registration.allowFromContactsOnly || !registration.allowedKeyList.isEmpty
        return PushNotificationQueryInfo(
            accessToken: isListed ? AccessToken("") : registration.accessToken,
            installationID: stored.key.installationID,
            publicKey: stored.key.keyHash.bytes,
            allowedKeyList: isListed ? registration.allowedKeyList : [],
            grant: registration.grant,
            version: registration.version,
            serverPublicKey: serverKey)
    }
}
