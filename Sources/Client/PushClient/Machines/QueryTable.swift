import Core
import WakuCrypto

/// Pending queries: one per registrant at a time, sent to all its servers at once.
///
/// A query ends when every server that may answer did, when all required devices are known, or after 3 s. Later answers still update the
/// directory.
struct QueryTable: Sendable {
    static let deadline = Duration.seconds(3)
    /// How long late answers are accepted.
    static let lateLife = Duration.seconds(60)
    static let limit = 1000

    typealias Ticket = UInt64

    struct Query: Sendable {
        let registrant: PublicKey
        /// Set for a query about this client's own registration: the only server whose answer counts.
        let ownCheckAt: PublicKey?
        let servers: Set<PublicKey>
        let begun: Timestamp
        var deadline: Timestamp?
        var answered: Set<PublicKey> = []
        var isEnded = false
    }

    private(set) var queries: [Ticket: Query] = [:]
    private var nextTicket: Ticket = 1

    /// - Returns: The new query's ticket; nil when a query about the registrant is pending, or ``limit`` is reached.
    mutating func begin(_ registrant: PublicKey, servers: Set<PublicKey>, ownCheckAt: PublicKey? = nil, at now: Timestamp) -> Ticket? {
        queries = queries.filter { !$0.value.isEnded || now.since($0.value.begun) < Self.lateLife }
        let isUnderWay = queries.values.contains { $0.registrant == registrant && $0.ownCheckAt == ownCheckAt && !$0.isEnded }
        guard !isUnderWay, queries.count < Self.limit else { return nil }
        let ticket = nextTicket
        nextTicket += 1
        queries[ticket] = Query(registrant: registrant, ownCheckAt: ownCheckAt, servers: servers, begun: now)
        return ticket
    }

    var nextWakeUp: Timestamp? { queries.values.lazy.filter { !$0.isEnded }.compactMap(\.deadline).min() }

    /// The registrants of the pending queries, apart from those about this client's own registration.
    var registrants: Set<PublicKey> {
        Set(queries.values.lazy.filter { !$0.isEnded && $0.ownCheckAt == nil }.map(\.registrant))
    }

    /// Registrants about whom servers may still answer in time, also when a query ended because some device was found.
    func unanswered(at now: Timestamp) -> Set<PublicKey> {
        Set(
            queries.values.lazy.filter { query in
                guard query.ownCheckAt == nil, query.answered != query.servers else { return false }
                return !query.isEnded || query.deadline.map { $0 > now } ?? false
            }.map(\.registrant))
    }

    func isUnderWay(about registrant: PublicKey) -> Bool {
        registrants.contains(registrant)
    }

    mutating func published(_ ticket: Ticket, at now: Timestamp) {
        queries[ticket]?.deadline = now + Self.deadline
    }

    mutating func expire(at now: Timestamp) -> [Query] {
        queries.filter { !$0.value.isEnded && $0.value.deadline.map { $0 <= now } ?? false }.keys.sorted().compactMap { end($0) }
    }

    mutating func end(_ ticket: Ticket) -> Query? {
        guard let query = queries[ticket], !query.isEnded else { return nil }
        queries[ticket]?.isEnded = true
        return query
    }

    /// Ends the queries about a registrant. Late answers are ignored.
    mutating func forget(_ registrant: PublicKey) {
        queries = queries.filter { $0.value.registrant != registrant || $0.value.ownCheckAt != nil }
    }

    /// Ends all queries; late answers are still accepted.
    ///
    /// - Returns: The queries that were pending.
    mutating func endAll() -> [Query] {
        queries.keys.sorted().compactMap { end($0) }
    }

    /// - Returns: The query, if answers of this server are accepted.
    mutating func answered(_ ticket: Ticket, by server: PublicKey) -> Query? {
        guard let query = queries[ticket], query.servers.contains(server) else { return nil }
        queries[ticket]?.answered.insert(server)
        return queries[ticket]
    }

    /// Whether every server that may answer did.
    func isComplete(_ ticket: Ticket) -> Bool {
        queries[ticket].map { $0.answered == $0.servers } ?? false
    }
}
