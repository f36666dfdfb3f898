import Delivery
package import Core
import SessionProtocol
package import Storage
import Waku
import WakuCrypto

/// How many subscriptions there are.
package struct SubscriptionFigures: Hashable, Sendable {
    /// Subscriptions that count, by service.
    package var services: [PushService: Int] = [:]
    package var accounts = 0
    /// Devices whose token is in doubt.
    package var inDoubt = 0
    /// Names of ended subscriptions.
    package var leftNames = 0

    package var total: Int { services.values.reduce(0, +) }

    package init() {}
}

/// What can be told of a subscription without opening it.
package struct SubscriptionSummary: Sendable {
    let row: Int64
    /// ``Subscriptions/name(of:_:)``
    package let name: [UInt8]
    let sealed: [UInt8]
    /// Keyed hash of the pubkey.
    package let accountHash: [UInt8]
    package let service: PushService
    /// `sig_ts`, Unix seconds.
    package let signedAt: Int64
    /// Unix seconds.
    package var expiresAt: Int64 { StoredSubscription(signedAt: signedAt).expiresAt }
}

/// Selects subscriptions.
package struct SubscriptionFilter: Sendable {
    package var service: PushService?
    /// Keyed hash of the pubkey, or its beginning.
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
    /// With those that expired in the last minute: so an index alone is read.
    private static let countAccounts = Query(SessionStorage.subscription, [.distinctCount(SessionStorage.account)])
    private static let countNames = Query(SessionStorage.leftName, [.count])

    /// Reads indexes of all subscriptions: a second for some millions.
    ///
    /// - Parameter now: Unix seconds.
    package static func figures(at now: Int64) -> StoreCommand<SubscriptionFigures> {
        DeliveryStorage.doubtedDevices(of: SessionStorage.protocolNumber).then { doubted in
            let oldest = Value.integer(oldestSignature(at: now))
            return .read([countByService(oldest), countAccounts(), countNames()]) { found in
                var figures = SubscriptionFigures()
                for row in found[0] {
                    guard let service = try? PushService(stored: try row.integer(0)) else { continue }
                    figures.services[service] = Int(try row.integer(1))
                }
                figures.accounts = Int(try found[1][0].integer(0))
                figures.leftNames = Int(try found[2][0].integer(0))
                figures.inDoubt = doubted.count
                return .done(figures)
            }
        }
    }

    // MARK: Lists

    private static let summaryColumns = [
        .id, SessionStorage.name, SessionStorage.account, SessionStorage.service, SessionStorage.signedAt, SessionStorage.sealed,
    ]
    private static let findAll = Query(SessionStorage.subscription, summaryColumns, order: [.ascending(.id)])
    private static let findByAccount = Query(
        SessionStorage.subscription, summaryColumns, where: [.equal(SessionStorage.account)], order: [.ascending(.id)])

    private static func summary(_ row: Row) throws -> SubscriptionSummary {
        SubscriptionSummary(
            row: try row.integer(0), name: try row.bytes(1), sealed: try row.bytes(5), accountHash: try row.bytes(2),
            service: try PushService(stored: try row.integer(3)), signedAt: try row.integer(4))
    }

    /// Subscriptions that match, oldest row first, until `visit` returns false. Blocks as the store's `scan` does.
    ///
    /// - Throws: `StoreError`
    package static func forEach(
        _ filter: SubscriptionFilter, in store: any Store, _ visit: (SubscriptionSummary) throws -> Bool
    ) throws(StoreError) {
        try store.scan(findAll()) { row in
            let summary = try summary(row)
            return filter.matches(summary) ? try visit(summary) : true
        }
    }

    /// Of one account, by its keyed hash.
    package static func ofAccount(_ hash: [UInt8]) -> StoreCommand<[SubscriptionSummary]> {
        .find(findByAccount(.bytes(hash))) { .done(try $0.map(summary)) }
    }

    /// What a row holds.
    ///
    /// - Throws: `CryptoError` when it was altered, or is sealed with another key; `UnexpectedValue`.
    package func open(_ summary: SubscriptionSummary) throws -> SubscriptionRecord {
        try open(summary.sealed, named: summary.name, signedAt: summary.signedAt)
    }
}
