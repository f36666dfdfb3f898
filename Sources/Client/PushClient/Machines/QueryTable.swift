import Core
import WakuCrypto

/// Pending queries: one per registrant at a time, sent to all its servers at once. Over ``limit``, further ones wait until others end.
///
/// A query ends when every server that may answer did, when all required devices are known, or after 3 s. Later answers still update the
/// directory.
struct QueryTable: Sendable {
    static let deadline = Duration.seconds(3)
    /// How long late answers are accepted.
    static let lateLife = Duration.seconds(60)
    /// The maximum number of queries at a time, apart from those about this client's own registration. Half of ``AnswerTopics/limit``, which leaves
    /// room for requests: of more questions at a time some answers are not read.
    static let limit = 256
    /// The maximum number of queries, ended ones included.
    static let rememberedCount = 1024

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
        /// Whether the deadline has passed.
        var isOver = false

        /// Whether servers may still answer in time, also when the query ended because some device was found.
        var isUnanswered: Bool { answered != servers && !isOver && (!isEnded || deadline != nil) }
    }

    private(set) var queries: [Ticket: Query] = [:]
    private var nextTicket: Ticket = 1
    /// Registrants with a pending query, and those whose query waits, without queries about this client's own registration.
    private(set) var registrants: Set<PublicKey> = []
    /// The waiting queries, in order: callers' first. Those of registrants forgotten meanwhile are skipped.
    private var waiting: ArraySlice<(registrant: PublicKey, servers: Set<PublicKey>, isForCaller: Bool)> = []
    /// The registrants in ``waiting``.
    private var waitingRegistrants: Set<PublicKey> = []
    /// Registrants about whom queries began, were answered or ended.
    private var affected: Set<PublicKey> = []

    /// - Parameter isForCaller: Whether a caller waits for the answers: its query goes before those of messages.
    /// - Returns: The new query's ticket; nil when a query about the registrant is pending, or must wait: see ``beginWaiting(at:isNeeded:)``.
    mutating func begin(
        _ registrant: PublicKey, servers: Set<PublicKey>, ownCheckAt: PublicKey? = nil, isForCaller: Bool = false, at now: Timestamp
    ) -> Ticket? {
        if ownCheckAt != nil {
            let isUnderWay = queries.values.contains { $0.ownCheckAt == ownCheckAt && !$0.isEnded }
            return isUnderWay ? nil : add(registrant, servers, ownCheckAt: ownCheckAt, at: now)
        }
        let isNew = registrants.insert(registrant).inserted
        affected.insert(registrant)
        if isNew, registrants.count - waitingRegistrants.count <= Self.limit { return add(registrant, servers, ownCheckAt: nil, at: now) }
        if isForCaller, isNew || waitingRegistrants.contains(registrant) {
            // Its former place, if it has one, is skipped.
            waiting.insert((registrant, servers, true), at: waiting.firstIndex { !$0.isForCaller } ?? waiting.endIndex)
            waitingRegistrants.insert(registrant)
        } else if isNew {
            waiting.append((registrant, servers, false))
            waitingRegistrants.insert(registrant)
        }
        return nil
    }

    /// Begins the next one of the queries that waited for the end of others; nil if there is none, or no room.
    ///
    /// - Parameter isNeeded: Whether a message still waits for a query about the registrant.
    mutating func beginWaiting(
        at now: Timestamp, isNeeded: (PublicKey) -> Bool
    ) -> (ticket: Ticket, registrant: PublicKey, servers: Set<PublicKey>)? {
        while let next = waiting.first, registrants.count - waitingRegistrants.count < Self.limit {
            waiting.removeFirst()
            guard waitingRegistrants.remove(next.registrant) != nil else { continue }
            affected.insert(next.registrant)
            guard next.isForCaller || isNeeded(next.registrant) else {
                registrants.remove(next.registrant)
                continue
            }
            return (add(next.registrant, next.servers, ownCheckAt: nil, at: now), next.registrant, next.servers)
        }
        return nil
    }

    private mutating func add(_ registrant: PublicKey, _ servers: Set<PublicKey>, ownCheckAt: PublicKey?, at now: Timestamp) -> Ticket {
        queries = queries.filter { !$0.value.isEnded || now.since($0.value.begun) < Self.lateLife }
        if queries.count >= Self.rememberedCount {
            // The oldest first.
            let ended = queries.filter(\.value.isEnded).keys.sorted()
            for ticket in ended.prefix(queries.count - Self.rememberedCount / 2) { queries[ticket] = nil }
        }
        let ticket = nextTicket
        nextTicket += 1
        queries[ticket] = Query(registrant: registrant, ownCheckAt: ownCheckAt, servers: servers, begun: now)
        return ticket
    }

    /// The next deadline of a query that is under way, or that servers may still answer.
    var nextWakeUp: Timestamp? { queries.values.lazy.filter { !$0.isEnded || $0.isUnanswered }.compactMap(\.deadline).min() }

    mutating func takeAffected() -> Set<PublicKey> {
        defer { affected = [] }
        return affected
    }

    /// Whether servers may still answer a query about the registrant in time.
    func isUnanswered(about registrant: PublicKey) -> Bool {
        waitingRegistrants.contains(registrant)
            || queries.values.contains { $0.registrant == registrant && $0.ownCheckAt == nil && $0.isUnanswered }
    }

    func isUnderWay(about registrant: PublicKey) -> Bool {
        registrants.contains(registrant)
    }

    mutating func published(_ ticket: Ticket, at now: Timestamp) {
        queries[ticket]?.deadline = now + Self.deadline
    }

    mutating func expire(at now: Timestamp) -> [Query] {
        let over = queries.filter { !$0.value.isOver && $0.value.deadline.map { $0 <= now } ?? false }.keys.sorted()
        for ticket in over {
            queries[ticket]?.isOver = true
            if let query = queries[ticket], query.ownCheckAt == nil { affected.insert(query.registrant) }
        }
        return over.compactMap { end($0) }
    }

    mutating func end(_ ticket: Ticket) -> Query? {
        guard let query = queries[ticket], !query.isEnded else { return nil }
        queries[ticket]?.isEnded = true
        if query.ownCheckAt == nil {
            registrants.remove(query.registrant)
            affected.insert(query.registrant)
        }
        return query
    }

    /// Ends the queries about a registrant. Late answers are ignored.
    mutating func forget(_ registrant: PublicKey) {
        registrants.remove(registrant)
        waitingRegistrants.remove(registrant)
        affected.insert(registrant)
        queries = queries.filter { $0.value.registrant != registrant || $0.value.ownCheckAt != nil }
    }

    /// Ends all queries; late answers are still accepted.
    ///
    /// - Returns: The queries that were pending.
    mutating func endAll() -> [Query] {
        queries.keys.sorted().compactMap { end($0) }
    }

    /// Whether answers of this server are accepted.
    func accepts(_ ticket: Ticket, from server: PublicKey) -> Bool {
        queries[ticket]?.servers.contains(server) ?? false
    }

    /// - Returns: The query, if answers of this server are accepted.
    mutating func answered(_ ticket: Ticket, by server: PublicKey) -> Query? {
        guard accepts(ticket, from: server), let query = queries[ticket] else { return nil }
        queries[ticket]?.answered.insert(server)
        if query.ownCheckAt == nil { affected.insert(query.registrant) }
        return queries[ticket]
    }

    /// Whether every server that may answer did.
    func isComplete(_ ticket: Ticket) -> Bool {
        queries[ticket].map { $0.answered == $0.servers } ?? false
    }
}
