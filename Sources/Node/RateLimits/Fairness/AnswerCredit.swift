package import Core

/// Bounds the amplification of answers: the bytes of answers about a registrant, relative to the bytes of queries about it.
///
/// Each query earns the registrant ``amplification`` times its size; an answer leaves if it is paid for. Registrants that are known earn
/// ``knownRate`` besides, so that many contacts can ask for a long list. The first whole answer within ten minutes, which leaves unpaid, is a limit of
/// its own: ``Limits/wholeAnswersByTarget``.
package struct AnswerCredit: Sendable {
    /// Bytes of answers for a byte of queries.
    package static let amplification = 50
    /// Bytes per second for known registrants.
    package static let knownRate = 64 << 10
    /// The most that is saved: more than the largest answer.
    package static let limit = 5 << 20
    /// See ``RateLimiter``.
    private static let greatestDelay = Duration.seconds(10)

    private struct Account {
        var bytes: Int
        var at: Timestamp
    }

    private var accounts = GenerationalCache<[UInt8], Account>(capacity: 50_000)

    /// Adds what a query earns, and takes the size of the answer if that is covered.
    ///
    /// - Parameters:
    ///   - byteCount: the size of the rows about the registrant.
    ///   - queryByteCount: the registrant's part of the size of the query.
    package mutating func pays(
        byteCount: Int, about registrant: [UInt8], queryByteCount: Int, _ standing: Standing, at now: Timestamp
    ) -> Bool {
        var account = accounts.value(of: registrant) ?? Account(bytes: 0, at: now)
        let earned = min(max(queryByteCount, 0), Self.limit) * Self.amplification
        let elapsed = max(0, min(now.since(account.at).nanoseconds, 1_000_000_000 * 600))
        let accrued = standing == .known ? Int(elapsed) * Self.knownRate / 1_000_000_000 : 0
        account.bytes = min(Self.limit, account.bytes + earned + accrued)
        // A greater step back means that the clock was set.
        if now > account.at || account.at.since(now) > Self.greatestDelay { account.at = now }
        let isPaid = account.bytes >= byteCount
        if isPaid { account.bytes -= byteCount }
        accounts.set(account, of: registrant)
        return isPaid
    }
}
