import Core
import DequeModule

/// The places of push services with posts in flight, in two parts: one for services that answer, one for all others.
///
///     waiting ──(a place of its part is free, and it is the turn of its domain)──▶ open ──(posts ended)──▶ gone
///
/// So names of servers that do not answer take no place of a service that answers, and open few connections and look-ups at once. Services of one
/// domain have at most a tenth of a part, and a place that becomes free goes to the domains in turns: names cost nothing, domains do.
struct OriginPlaces {
    enum Part {
        /// For services that accepted a message lately and answer in time: see ``OriginStanding/isResponsive(at:)``.
        case responsive
        case others
    }

    private struct Domain {
        var openCount = 0
        /// The waiting services, by ``lastNumber``.
        var line = IndexedHeap<WebPushOrigin, UInt64>()
        /// Whether it is in ``turns``.
        var hasTurn = false
    }

    private let limit: Int
    private let domainLimit: Int
    private(set) var openCount = 0
    /// Those with open or waiting services.
    private var domains: [String: Domain] = [:]
    /// The domains that had waiting services and were below their limit when they were added, in order.
    private var turns: Deque<String> = []
    private var lastNumber: UInt64 = 0
    /// The waiting services of all domains, by the time since when they wait.
    private var waiting = IndexedHeap<WebPushOrigin, Timestamp>()

    /// - Parameter count: the places of both parts. A fifth is for services that have not answered, or not in time.
    init(_ part: Part, of count: Int) {
        limit = min(count, max(1, part == .others ? count / 5 : count - count / 5))
        domainLimit = max(1, limit / 10)
    }

    /// Since when the service waits that has waited longest; nil when none waits.
    var waitingSince: Timestamp? { waiting.first?.key }

    func hasRoom(for domain: String) -> Bool { openCount < limit && (domains[domain]?.openCount ?? 0) < domainLimit }

    /// Whether a service waits for a place that the end of a service of this domain would free.
    func isWanted(_ domain: String) -> Bool { !turns.isEmpty || domains[domain]?.line.isEmpty == false }

    mutating func open(_ domain: String) {
        openCount += 1
        domains[domain, default: Domain()].openCount += 1
    }

    mutating func close(_ domain: String) {
        openCount -= 1
        domains[domain]?.openCount -= 1
        update(domain)
    }

    /// Adds a service to the line.
    mutating func join(_ service: WebPushOrigin, of domain: String, at now: Timestamp) {
        lastNumber += 1
        domains[domain, default: Domain()].line.insert(service, key: lastNumber)
        waiting.insert(service, key: now)
        update(domain)
    }

    /// Removes a service from the line.
    mutating func leave(_ service: WebPushOrigin, of domain: String) {
        domains[domain]?.line.remove(service)
        waiting.remove(service)
        update(domain)
    }

    /// Opens the service whose turn it is, if a place is free. Call it until it returns nil after each ``close(_:)``.
    mutating func next() -> WebPushOrigin? {
        while openCount < limit, let name = turns.popFirst() {
            domains[name]?.hasTurn = false
            guard (domains[name]?.openCount ?? 0) < domainLimit, let service = domains[name]?.line.popFirst() else {
                update(name)
                continue
            }
            waiting.remove(service)
            open(name)
            update(name)
            return service
        }
        return nil
    }

    /// Gives a domain a turn if a service of it may be opened, and forgets it if it has none.
    private mutating func update(_ name: String) {
        guard let domain = domains[name], !domain.hasTurn else { return }
        if domain.line.isEmpty {
            if domain.openCount == 0 { domains[name] = nil }
        } else if domain.openCount < domainLimit {
            domains[name]?.hasTurn = true
            turns.append(name)
        }
    }
}

extension WebPushOrigin {
    /// The last two labels of the host name: mostly the domain that somebody paid for, else the parent of several. All hosts that are IP addresses count
    /// as one domain, `""`: nobody needs to own an address that does not answer.
    var domain: String {
        let host = description.dropFirst("https://".count)
        guard host.first != "[" else { return "" }
        let labels = host.prefix { $0 != ":" }.split(separator: ".", omittingEmptySubsequences: false)
        // A host that ends in a number is an IPv4 address.
        guard let last = labels.last, !last.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return "" }
        return labels.suffix(2).joined(separator: ".")
    }
}
