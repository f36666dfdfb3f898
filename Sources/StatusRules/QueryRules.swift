import PushTypes
package import StatusProtocol
package import WakuCrypto

/// What a query is answered, `PROTOCOL.md` section 5.
package struct QueryRules: Sendable {
    private let serverKey: [UInt8]

    package init(server: PublicKey) {
        serverKey = server.compressed
    }

    /// Whom a query asks about, each once.
    package func registrants(in query: PushNotificationQuery) -> [KeyHash] {
        var seen: Set<KeyHash> = []
        return query.publicKeys.compactMap(KeyHash.init(bytes:)).filter { seen.insert($0).inserted }
    }

    /// nil when nothing is registered: then there is no answer.
    ///
    /// - Parameter registrations: as many as a ``QueryBudget`` admitted.
    package func answer(_ registrations: [StoredRegistration], messageID: [UInt8]) -> PushNotificationQueryResponse? {
        registrations.isEmpty ? nil : PushNotificationQueryResponse(info: registrations.map(row), messageID: messageID)
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

/// One small query must not draw an answer without end, nor load one. Rows are offered the most recently changed first; those beyond the
/// budget are left out, so that the same query gets the same answer for as long as nothing changes.
package struct QueryBudget: Sendable {
    package static let rowLimit = 1_000
    /// Of the answer, which goes out in segments when it is over 768 KiB.
    package static let byteLimit = 4 << 20

    private var rowCount = 0
    private var byteCount = 0
    /// A registration was left out: so are all that follow.
    package private(set) var isSpent = false

    package init() {}

    /// Whether there is room for one more. The first always fits.
    package mutating func admits(_ stored: StoredRegistration) -> Bool {
        let rowByteCount = Self.byteCount(of: stored)
        guard !isSpent, rowCount == 0 || (rowCount < Self.rowLimit && byteCount + rowByteCount <= Self.byteLimit) else {
            isSpent = true
            return false
        }
        rowCount += 1
        byteCount += rowByteCount
        return true
    }

    /// What its row takes in an answer, roughly.
    package static func byteCount(of stored: StoredRegistration) -> Int {
        stored.registration.allowedKeyList.reduce(512) { $0 + $1.count + 4 }
    }
}
