import Core
package import StatusProtocol
package import WakuCrypto

/// Answers queries, `PROTOCOL.md` section 5.
package struct QueryRules: Sendable {
    private let serverKey: [UInt8]

    package init(server: PublicKey) {
        serverKey = server.compressed
    }

    /// The distinct registrants of a query.
    package func registrants(in query: PushNotificationQuery) -> [KeyHash] {
        var seen: Set<KeyHash> = []
        return query.publicKeys.compactMap(KeyHash.init(bytes:)).filter { seen.insert($0).inserted }
    }

    /// The answer; nil if there are no registrations, in which case no answer is sent.
    ///
    /// - Parameter registrations: registrations admitted by a ``QueryBudget``.
    package func answer(_ registrations: [StoredRegistration], messageID: [UInt8]) -> PushNotificationQueryResponse? {
        registrations.isEmpty ? nil : PushNotificationQueryResponse(info: registrations.map(row), messageID: messageID)
    }

    /// A row with the access token, or with the allowed key list, but never both.
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

/// Limits the size of the answer to a query, and of the rows loaded for it. Rows are added most recently changed first, and rows over the
/// budget are left out, so that the same query gets the same answer until a row changes.
package struct QueryBudget: Sendable {
    package static let rowLimit = 1_000
    /// Limit of the answer in bytes. Answers over 768 KiB are sent in segments.
    package static let byteLimit = 4 << 20

    private static let rowOverhead = 512

    private var rowCount = 0
    private var byteCount = 0
    /// Whether a registration was left out; all later ones are left out too.
    package private(set) var isSpent = false

    package init() {}

    /// Adds a stored registration if it is within the budget, before it is read. The first is always admitted.
    package mutating func admits(storedByteCount: Int) -> Bool {
        admits(rowByteCount: Self.rowOverhead + storedByteCount)
    }

    /// Adds a row if it is within the budget. The first is always admitted.
    ///
    /// - Parameter rowByteCount: The approximate size of the row in an answer, in bytes.
    package mutating func admits(rowByteCount: Int) -> Bool {
        guard !isSpent, rowCount == 0 || (rowCount < Self.rowLimit && byteCount + rowByteCount <= Self.byteLimit) else {
            isSpent = true
            return false
        }
        rowCount += 1
        byteCount += rowByteCount
        return true
    }

    /// The approximate size of a registration's row in an answer, in bytes.
    package static func byteCount(of stored: StoredRegistration) -> Int {
        stored.registration.allowedKeyList.reduce(rowOverhead) { $0 + $1.count + 4 }
    }
}
