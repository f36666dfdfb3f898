import SessionProtocol
import Storage
import Core

/// Ends subscriptions without a client's request.
extension Subscriptions {
    private static let findToken = Query(
        SessionStorage.subscription, [SessionStorage.token, SessionStorage.signedAt], where: [.idAmong])
    /// Limit of the subscriptions of a dead token that end at once, because a client can create any number of accounts. The rest end when their own
    /// notifications fail.
    private static let endedAtOnce = 1_000
    private static let findByToken = Query(
        SessionStorage.subscription, [.id, SessionStorage.signedAt], where: [.equal(SessionStorage.token)])

    /// Ends all subscriptions with the dead token of a row. Does nothing if the row was renewed in the meantime.
    ///
    /// - Parameter version: its `sig_ts` when the token was posted.
    static func endToken(ofRow row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        .find(findToken(ids: [row])) { rows in
            guard let found = rows.first, try found.unsigned(1) == version else { return .change([]) }
            return .find(findByToken(.bytes(try found.bytes(0)), limit: endedAtOnce)) { rows in
                var ending = try rows.map { (id: try $0.integer(0), signedAt: try $0.integer(1)) }
                if !ending.contains(where: { $0.id == row }) { ending.append((row, Int64(bitPattern: version))) }
                return end(ending.sorted { $0.id < $1.id }, at: now).then { .change($0) }
            }
        }
    }

    private static let findExpired = Query(
        SessionStorage.subscription, [.id, SessionStorage.signedAt], where: [.less(SessionStorage.signedAt)],
        order: [.ascending(SessionStorage.signedAt)])

    /// Removes expired subscriptions, oldest first, with their pending notifications.
    ///
    /// - Parameter now: Unix seconds.
    /// - Returns: The removed subscriptions; if there are `limit`, there may be more.
    static func expire(at now: Int64, limit: Int) -> StoreCommand<[SubscriptionID]> {
        .find(findExpired(.integer(oldestSignature(at: now)), limit: limit)) { rows in
            let expired = try rows.map { (id: try $0.integer(0), signedAt: try $0.integer(1)) }
            return end(expired, at: Timestamp(seconds: now)).then { .change($0, expired.map { SubscriptionID(rawValue: $0.id) }) }
        }
    }

    private static let names = ExpiredRows(SessionStorage.unsubscribedName, by: SessionStorage.expiresAt)
    private static let aheadTimes = ExpiredRows(SessionStorage.aheadTime, by: SessionStorage.signedAt)

    /// Deletes the names of subscriptions that ended 15 days ago, and ahead times that are more than 14 days old.
    ///
    /// - Parameter now: Unix seconds.
    static func forgetNames(in store: any Store, at now: Int64) async throws(StoreError) {
        try await store.commitInChunks { names.remove(before: now + 1, limit: $0) }
        try await store.commitInChunks { aheadTimes.remove(before: now - SessionTimes.subscriptionLifetime, limit: $0) }
    }
}

/// Retention limits in addition to those of `SubscriptionRules`.
enum SubscriptionRetention {
    /// A second report of a message within this time makes no second notification.
    static let deliveries = Duration.seconds(86_400)
    /// Maximum number of remembered deliveries. Each takes about 120 bytes of the database.
    static let deliveryLimit = 50_000_000
}
