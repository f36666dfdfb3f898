package import Delivery
import Core
package import Storage

/// The tables of Session: subscriptions, names of ended subscriptions, times that were ahead, and deliveries.
package enum SessionStorage {
    /// The number that identifies the protocol in stored rows.
    package static let protocolNumber = ProtocolNumber(rawValue: 3)

    package static let part = StorePart(
        "session", tables: [subscription, unsubscribedName, seen, aheadTime],
        migrations: [
            [.create(subscription(with: [], [])), .create(unsubscribedName), .create(seen)], [.create(aheadTime)],
            [.addColumn(deliveredAt, to: subscription)],
            [.addColumn(webPushKey, to: subscription), .createIndex(webPushKeyIndex, on: subscription)],
            [.addColumn(webPushOrigin, to: subscription), .createIndex(webPushOriginIndex, on: subscription)],
        ])

    // MARK: Subscriptions

    /// Keyed hash of pubkey, service and token, which together are unique: ``Subscriptions/name(of:_:)``.
    static let name = Column("name", .bytes)
    /// Keyed hash of the pubkey.
    static let account = Column("account", .bytes)
    /// Keyed hash of service and token: a dead token ends all its subscriptions.
    static let token = Column("token", .bytes)
    /// ``Core/PushService/storedValue``.
    static let service = Column("service", .integer)
    /// `sig_ts`, Unix seconds. Delivery uses it as the version of the device.
    static let signedAt = Column("signed_at", .integer)
    /// The size of the subscription's `MonitorEntry`, so that the entry need not be made at the start.
    static let entryByteCount = Column("entry_bytes", .integer)
    /// ``SubscriptionRecord``.
    static let sealed = Column("sealed", .bytes)

    /// The time at which gorush first accepted a notification for it, or at which a subscription was imported for which it had, Unix seconds; null:
    /// never, or before a release without this column.
    static let deliveredAt = Column("delivered_at", .integer, isOptional: true)

    /// `VAPIDKey.mark(of:)` of the key that a Web Push subscription was made for; null if it names none, for other services, and in rows of
    /// releases without this column.
    static let webPushKey = Column("web_push_key", .integer, isOptional: true)
    private static let webPushKeyIndex = Index(
        "session_subscription_web_push_key", on: [webPushKey, signedAt], where: .present(webPushKey))

    /// ``Subscriptions/originMark(of:)``, by which devices of a push service are counted; null for other services, and in rows of releases without this
    /// column until they are renewed.
    static let webPushOrigin = Column("web_push_origin", .integer, isOptional: true)
    private static let webPushOriginIndex = Index(
        "session_subscription_web_push_origin", on: [webPushOrigin], where: .present(webPushOrigin))

    /// A row for each subscription. Rows whose `sig_ts` is 14 days old are expired, and are removed within a minute.
    static let subscription = subscription(with: [deliveredAt, webPushKey, webPushOrigin], [webPushKeyIndex, webPushOriginIndex])

    private static func subscription(with added: [Column], _ indexes: [Index]) -> Table {
        Table(
            "session_subscription", columns: [name, account, token, service, signedAt, entryByteCount, sealed] + added, unique: [name],
            indexes: [
                Index("session_subscription_account", on: [account]), Index("session_subscription_token", on: [token]),
                Index("session_subscription_signed", on: [signedAt, service]),
            ] + indexes, neverReusesIDs: true,
            sealed: SealedColumn(small: sealed, boundTo: [name, signedAt], label: "Session subscriptions"))
    }

    // MARK: Names of ended subscriptions

    /// Unix seconds.
    static let expiresAt = Column("expires_at", .integer)

    /// Names of ended subscriptions, kept for 15 days so that an older subscription cannot be replayed.
    static let unsubscribedName = Table(
        "session_left_name", columns: [name, signedAt, expiresAt], unique: [name],
        indexes: [Index("session_left_name_expires", on: [expiresAt])])

    // MARK: Clocks that are ahead

    /// ``SessionProtocol/AheadTime/Kind``.
    static let kind = Column("kind", .integer)
    /// Unix seconds.
    static let arrivedAt = Column("arrived_at", .integer)

    /// Each `sig_ts` that was ahead of this node's clock on arrival, kept until it is 14 days old, even after it is replaced. Nodes of earlier
    /// releases do not write this table.
    static let aheadTime = Table(
        "session_ahead_time", columns: [name, kind, signedAt, arrivedAt], unique: [name, kind, signedAt],
        indexes: [Index("session_ahead_time_signed", on: [signedAt])])

    // MARK: Deliveries

    static let delivery = Column("delivery", .bytes)
    /// Nanoseconds since 1970.
    static let at = Column("at", .integer)

    /// Deliveries of the last 24 hours that left the outbox without being accepted, so that a second report of a message makes no notification.
    /// Those in the outbox, or accepted, are found in Delivery's tables. If several nodes share the store, or an earlier release enqueued them, all
    /// deliveries are here.
    static let seen = Table("session_seen", columns: [delivery, at], unique: [delivery])
}

extension PushService {
    /// The value in stored rows; must not change.
    var storedValue: Int64 {
        switch self {
        case .apns: 1
        case .apnsSandbox: 2
        case .firebase: 3
        case .huawei: 4
        case .webPush: 5
        }
    }

    init(stored value: Int64) throws(UnexpectedValue) {
        guard let service = Self.allCases.first(where: { $0.storedValue == value }) else { throw UnexpectedValue() }
        self = service
    }
}
