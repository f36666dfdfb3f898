import Delivery
package import Core
import SessionProtocol
package import Storage

/// Numbers of subscriptions.
package struct SubscriptionFigures: Hashable, Sendable {
    /// Subscriptions that are not expired, by service.
    package var services: [PushService: Int] = [:]
    package var accounts = 0
    /// Devices with a doubtful token, by service.
    package var inDoubt: [PushService: Int] = [:]
    /// Number of names of ended subscriptions.
    package var leftNames = 0
    /// Web Push subscriptions that are not expired and name a VAPID key, by `VAPIDKey.mark(of:)`.
    package var webPushKeys: [Int64: Int] = [:]

    package var total: Int { services.values.reduce(0, +) }
}

/// The data of a subscription that is not encrypted.
package struct SubscriptionSummary: Sendable {
    let row: Int64
    /// The subscription's name: ``Subscriptions/name(of:_:)``.
    package let name: [UInt8]
    let sealed: [UInt8]
    /// Keyed hash of the pubkey.
    package let accountHash: [UInt8]
    package let service: PushService
    /// `sig_ts`, Unix seconds.
    package let signedAt: Int64
    /// Whether gorush has accepted a notification for it.
    package let wasDelivered: Bool
    /// Unix seconds.
    package var expiresAt: Int64 { StoredSubscription(signedAt: signedAt).expiresAt }
}

/// Selects subscriptions.
package struct SubscriptionFilter: Sendable {
    package var service: PushService?
    /// A prefix of the keyed hash of the pubkey.
    package var accountHashPrefix: [UInt8] = []
    /// Unix seconds.
    package var signedBefore: Int64?
    /// Unix seconds.
    package var signedSince: Int64?

    package init() {}

    func matches(_ summary: SubscriptionSummary) -> Bool {
        (service.map { $0 == summary.service } ?? true) && summary.accountHash.starts(with: accountHashPrefix)
            && (signedBefore.map { summary.signedAt < $0 } ?? true) && (signedSince.map { summary.signedAt >= $0 } ?? true)
    }
}

extension Subscriptions {
    private static let countByService = Query(
        SessionStorage.subscription, [.column(SessionStorage.service), .count], where: [.atLeast(SessionStorage.signedAt)],
        group: SessionStorage.service)
    private static let countAmong = Query(
        SessionStorage.subscription, [.column(SessionStorage.service), .count], where: [.idAmong], group: SessionStorage.service)
    /// Includes subscriptions that expired in the last minute, so that only an index is read.
    private static let countAccounts = Query(SessionStorage.subscription, [.distinctCount(SessionStorage.account)])
    private static let countByWebPushKey = Query(
        SessionStorage.subscription, [.column(SessionStorage.webPushKey), .count],
        where: [.present(SessionStorage.webPushKey), .atLeast(SessionStorage.signedAt)], group: SessionStorage.webPushKey)
    private static let countNames = Query(SessionStorage.unsubscribedName, [.count])

    /// Scans indexes of all subscriptions: about one second for a few million.
    ///
    /// - Parameter now: Unix seconds.
    package static func figures(at now: Int64) -> StoreCommand<SubscriptionFigures> {
        DeliveryStorage.doubtedDevices(of: SessionStorage.protocolNumber).then { doubted in
            let oldest = Value.integer(oldestSignature(at: now))
            return .read([
                countByService(oldest), countAccounts(), countNames(), countByWebPushKey(oldest), countAmong(ids: doubted),
            ]) { found in
                var figures = SubscriptionFigures()
                figures.services = try counts(found[0])
                figures.inDoubt = try counts(found[4])
                figures.accounts = Int(try found[1][0].integer(0))
                figures.leftNames = Int(try found[2][0].integer(0))
                for row in found[3] { figures.webPushKeys[try row.integer(0)] = Int(try row.integer(1)) }
                return .done(figures)
            }
        }
    }

    /// - Parameter rows: a service and a number each.
    private static func counts(_ rows: [Row]) throws -> [PushService: Int] {
        var counts: [PushService: Int] = [:]
        for row in rows {
            guard let service = try? PushService(stored: try row.integer(0)) else { continue }
            counts[service] = Int(try row.integer(1))
        }
        return counts
    }

    /// The number of subscriptions. Scans an index.
    ///
    /// - Parameter now: Unix seconds.
    static func count(at now: Int64) -> StoreCommand<Int> {
        .find(countByService(.integer(oldestSignature(at: now)))) { rows in .done(try rows.reduce(0) { $0 + Int(try $1.integer(1)) }) }
    }

    // MARK: Lists

    private static let summaryColumns = [
        .id, SessionStorage.name, SessionStorage.account, SessionStorage.service, SessionStorage.signedAt, SessionStorage.sealed,
        SessionStorage.deliveredAt,
    ]
    private static let findAll = Query(SessionStorage.subscription, summaryColumns, order: [.ascending(.id)])
    private static let findByAccount = Query(
        SessionStorage.subscription, summaryColumns, where: [.equal(SessionStorage.account)], order: [.ascending(.id)])

    private static func summary(_ row: Row) throws -> SubscriptionSummary {
        SubscriptionSummary(
            row: try row.integer(0), name: try row.bytes(1), sealed: try row.bytes(5), accountHash: try row.bytes(2),
            service: try PushService(stored: try row.integer(3)), signedAt: try row.integer(4),
            wasDelivered: !row.isNull(6))
    }

    /// Reads the matching subscriptions, oldest row first, until `visit` returns false. Blocks, as the store's `scan` does.
    package static func forEach(
        _ filter: SubscriptionFilter, in store: any Store, _ visit: (SubscriptionSummary) throws -> Bool
    ) throws(StoreError) {
        try store.scan(findAll()) { row in
            let summary = try summary(row)
            return filter.matches(summary) ? try visit(summary) : true
        }
    }

    /// The subscriptions of an account, selected by its keyed hash.
    package static func ofAccount(_ hash: [UInt8]) -> StoreCommand<[SubscriptionSummary]> {
        .find(findByAccount(.bytes(hash))) { .done(try $0.map(summary)) }
    }

    /// Decrypts the content of a row.
    ///
    /// - Throws: `CryptoError` if it was altered, or sealed with another key; `UnexpectedValue`.
    package func open(_ summary: SubscriptionSummary) throws -> SubscriptionRecord {
        try open(summary.sealed, named: summary.name, signedAt: summary.signedAt)
    }
}
