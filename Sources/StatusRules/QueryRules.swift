import PushTypes
public import StatusProtocol
public import WakuCrypto

/// What a query is answered, `PROTOCOL.md` section 5.
public struct QueryRules: Sendable {
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
    ///
    /// - Parameter registrations: as many as a ``QueryBudget`` admitted.
    public func answer(_ registrations: [StoredRegistration], messageID: [UInt8]) -> PushNotificationQueryResponse? {
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
public struct QueryBudget: Sendable {
    public static let rowLimit = 1_000
    /// Of the answer, which goes out in segments when it is over 768 KiB.
    public static let byteLimit = 4 << 20

    private var rowCount = 0
    private var byteCount = 0
    /// A registration was left out: so are all that follow.
    public private(set) var isSpent = false

    public init() {}

    /// Whether there is room for one more. The first always fits.
    public mutating func admits(_ stored: StoredRegistration) -> Bool {
        admits(rowByteCount: Self.byteCount(of: stored))
    }

    /// - Parameter rowByteCount: What the row takes in an answer, roughly.
    public mutating func admits(rowByteCount: Int) -> Bool {
        guard !isSpent, rowCount == 0 || (rowCount < Self.rowLimit && byteCount + rowByteCount <= Self.byteLimit) else {
            isSpent = true
            return false
        }
        rowCount += 1
        byteCount += rowByteCount
        return true
    }

    /// What its row takes in an answer, roughly.
    public static func byteCount(of stored: StoredRegistration) -> Int {
        stored.registration.allowedKeyList.reduce(512) { $0 + $1.count + 4 }
    }
}
