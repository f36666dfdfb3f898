import Delivery
import SessionProtocol
import SessionSwarms
import Storage
import Core
import Waku

/// How subscriptions end by themselves.
extension Subscriptions {
    private static let findToken = Query(
        SessionStorage.subscription, [SessionStorage.token, SessionStorage.signedAt], where: [.idAmong])
    /// Of a token that does not work: the rest end when their own notifications fail. Accounts cost nothing, so there may be any number.
    private static let endedAtOnce = 1_000
    private static let findByToken = Query(SessionStorage.subscription, [.id], where: [.equal(SessionStorage.token)])

    /// Ends all subscriptions with the token of a row, since the token does not work. Does nothing if the row was renewed meanwhile.
    ///
    /// - Parameters:
    ///   - row: of a subscription.
    ///   - version: its `sig_ts` when the token was posted.
    ///   - now: the time.
    static func endToken(ofRow row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        .find(findToken(ids: [row])) { rows in
            guard let found = rows.first, try found.unsigned(1) == version else { return .change([]) }
            return .find(findByToken(.bytes(try found.bytes(0)), limit: endedAtOnce)) { rows in
                end(Set(try rows.map { try $0.integer(0) }).union([row]).sorted(), at: now).then { .change($0) }
            }
        }
    }

    private static let findExpired = Query(
        SessionStorage.subscription, [.id], where: [.less(SessionStorage.signedAt)], order: [.ascending(SessionStorage.signedAt)])

    /// Removes expired subscriptions, the oldest first, with what waits for their devices.
    ///
    /// - Parameters:
    ///   - now: Unix seconds.
    ///   - limit: at most so many.
    /// - Returns: Those that were removed; as many as `limit` if there may be more.
    static func expire(at now: Int64, limit: Int) -> StoreCommand<[SubscriptionID]> {
        .find(findExpired(.integer(oldestSignature(at: now)), limit: limit)) { rows in
            let ids = try rows.map { try $0.integer(0) }
            return end(ids, at: Timestamp(seconds: now)).then { .change($0, ids.map(SubscriptionID.init(rawValue:))) }
        }
    }

    private static let removeNames = Mutation(SessionStorage.leftName, .delete(where: [.less(SessionStorage.expiresAt)]))

    private static let removeAhead = Mutation(SessionStorage.aheadTime, .delete(where: [.less(SessionStorage.signedAt)]))

    /// Forgets the names of subscriptions that ended 15 days ago, and times that were ahead and are more than 14 days old.
    ///
    /// - Parameter now: Unix seconds.
    static func forgetNames(at now: Int64) -> StoreCommand<Void> {
        .change([removeNames(.integer(now + 1)), removeAhead(.integer(now - SessionTimes.subscriptionLifetime))])
    }
}

/// Times that are kept to beside those of `SubscriptionRules`.
enum SubscriptionRetention {
    /// A second report of a message within this makes no second notification.
    static let deliveries = Duration.seconds(SessionTimes.duplicateWindow)
    /// More deliveries than this within that time are not remembered. Each takes some 120 bytes of the database.
    static let deliveryLimit = 50_000_000
}
