import DequeModule

/// Requests to storage servers with entries to read from the store. Small requests come first, so that a new subscription does not wait for
/// renewals, or for the first requests of a connection.
struct RequestQueue: Sendable {
    struct Request: Hashable, Sendable {
        let connection: ConnectionNumber
        let tag: RequestTag
        let ids: [SubscriptionID]
    }

    /// Requests with more entries are large.
    static let smallCount = 64

    private var small: Deque<Request> = []
    private var large: Deque<Request> = []

    var isEmpty: Bool { small.isEmpty && large.isEmpty }

    mutating func append(_ request: Request) {
        if request.ids.count <= Self.smallCount { small.append(request) } else { large.append(request) }
    }

    /// Removes the requests of a connection that has ended.
    mutating func removeAll(of connection: ConnectionNumber) {
        small.removeAll { $0.connection == connection }
        large.removeAll { $0.connection == connection }
    }

    /// The next requests, with entries to read together: all servers of a swarm are asked for a new subscription, and the store reads it once.
    ///
    /// - Parameter maximumCount: Limit of the entries of all requests together, unless the first has more.
    mutating func next(maximumCount: Int) -> [Request] {
        var (chosen, count): ([Request], Int) = ([], 0)
        while let request = small.first ?? large.first, chosen.isEmpty || count + request.ids.count <= maximumCount {
            if small.isEmpty { large.removeFirst() } else { small.removeFirst() }
            chosen.append(request)
            count += request.ids.count
        }
        return chosen
    }
}
