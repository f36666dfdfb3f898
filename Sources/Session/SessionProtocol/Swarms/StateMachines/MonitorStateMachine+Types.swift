import Core

/// The row id of a subscription.
package struct SubscriptionID: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }
}

/// Identifies a connection or connection attempt. Never reused, so that late events of an old connection are not attributed to a new one.
package struct ConnectionNumber: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Identifies a request. Never reused.
package struct RequestTag: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

extension MonitorStateMachine {
    struct Configuration: Hashable, Sendable {
        /// `--session-renewal`: the minimum time after which a subscription is renewed. Storage servers forget it after 65 minutes.
        var renewal: Duration = .seconds(45 * 60)
        /// Up to this fraction of ``renewal`` is added at random.
        let renewalSpread = 0.22
        /// The mean time between two requests for a subscription that its client renews all the time.
        let repeatInterval = Duration.seconds(60)
        /// The number of requests for a subscription that may follow each other at once.
        let repeatBurst = 4
        /// Limit of the time from the start of a connection to HELLO.
        var connectTimeout: Duration = .seconds(30)
        var replyTimeout: Duration = .seconds(60)
        /// Pauses before the next attempt, by the number of consecutive failures; the last value also applies to more failures.
        var pauses: [Duration] = [.seconds(10), .seconds(30), .seconds(60), .seconds(120)]
        /// A connection that lasts this long without a fault resets the number of failures.
        let stableConnection: Duration = .seconds(60)
        let maximumConnecting = 500
        /// Limit of the body of a request. Storage servers accept 5 MB. Larger requests would need a larger limit of message parts for replies, with
        /// which a hostile server could fill the memory.
        var maximumRequestByteCount = 500_000
        /// Limit of all unanswered requests together: bounds the memory used at the start.
        var maximumUnansweredByteCount = 64 << 20
        /// Limit of the entries of a request. A reply that refuses all entries lists the servers of a swarm for each: about 4 KB.
        let maximumRequestEntryCount = 500
        /// Minimum time between two requests for the map because of errcode 6.
        var mapInterval: Duration = .seconds(60)
        /// Minimum time between two redirections of an account by storage servers.
        let moveInterval: Duration = .seconds(1)
        /// How long redirected accounts are collected before their new swarm is asked.
        let moveGathering: Duration = .milliseconds(50)
        /// How long an account is monitored in a swarm named by a storage server, unless it is redirected there again.
        let moveLifetime: Duration = .seconds(65 * 60)
        /// How long servers named in hints are kept after the map contains their swarm, so that the map's servers are connected first.
        let moveLinger: Duration = .seconds(60)

        /// Members asked for within this time form one range and are renewed together, which limits the number of ranges. A quarter of the time over
        /// which renewals are spread, at most 60 s.
        var gathering: Duration { min(.seconds(60), renewal * renewalSpread / 4) }

        func pause(afterFailures failures: Int) -> Duration {
            pauses.isEmpty ? .zero : pauses[min(max(failures, 1), pauses.count) - 1]
        }
    }

    enum Action: Hashable, Sendable {
        /// Followed by ``connected(_:at:)`` or ``failed(_:at:)``.
        case connect(ConnectionNumber, StorageServer)
        case close(ConnectionNumber)
        /// `monitor.messages` with the entries of these subscriptions, in this order; followed by ``sent(_:at:)``, and ``replied(_:_:at:)`` or
        /// ``refused(_:at:)``.
        /// The entry of a subscription that has ended may be replaced by any other entry, but not left out.
        case ask(ConnectionNumber, RequestTag, [SubscriptionID])
        /// Request the map, because a storage server reports a different swarm.
        case requestMap
    }

    /// An unanswered request.
    typealias Request = (server: Int, sequences: [UInt64], byteCount: Int)

    /// A storage server of the map, or of a hint.
    struct Server: Sendable {
        enum State: Sendable {
            case idle(retryAt: Instant)
            case connecting(ConnectionNumber, deadline: Instant)
            case connected(ConnectionNumber, since: Instant)
            /// Removed from the map: the array element can be reused.
            case unused
        }

        var description: StorageServer
        /// Index of its swarm.
        var swarm: Int
        var state: State
        /// Whether the server was named in a hint of another storage server and is not in the map.
        var isNamed = false
        /// Number of notices that the server may still send for accounts that the map has moved away.
        var lateEndings = 0
        /// Consecutive failures since it last answered a request, or was connected for ``Configuration/stableConnection``. HELLO alone does not
        /// reset it, or a server that never answers would be connected every 10 s.
        var failures = 0
        /// The server was asked for all members of its swarm up to this sequence number.
        var askedThrough: UInt64 = 0
        /// The ranges it was asked for, in order of the sequence, without overlaps.
        var ranges: [AskedRange] = []
        /// Refusals of members by the last sequence number, or the first, until they are asked for again.
        var refused: [UInt64: MonitorRefusal] = [:]
        /// Consecutive refusals with errcode 6, by sequence number.
        var wrongSwarmCounts: [UInt64: Int] = [:]
        /// Times at which members refused with errcode 6 are asked for again, by sequence number.
        var retries: [UInt64: Instant] = [:]
        /// The earliest time in ``retries``, or an earlier one.
        var retryAt: Instant?
        /// Requests without an answer. The deadline is nil until the request is sent.
        var outstanding: [(tag: RequestTag, deadline: Instant?)] = []
        var isInBacklog = false
        var wakeUp: Instant?

        /// Whether there may be elements in ``refused``, ``wrongSwarmCounts`` or ``retries``.
        var hasRefusals: Bool { !refused.isEmpty || !wrongSwarmCounts.isEmpty }

        var oldestDeadline: Instant? { outstanding.lazy.compactMap(\.deadline).min() }

        mutating func updateWakeUp() {
            wakeUp = nil
            switch state {
            case .idle, .unused: return
            case .connecting(_, let deadline): wakeUp = deadline
            case .connected:
                var times = [oldestDeadline, retryAt].compactMap { $0 }
                // A server in the backlog waits for answers, not for a time.
                if !isInBacklog, let due = ranges.lazy.map(\.dueAt).min() { times.append(due) }
                wakeUp = times.min()
            }
        }

        /// Resets the request state when a connection starts or ends.
        mutating func forgetAsked() {
            askedThrough = 0
            ranges = []
            refused = [:]
            wrongSwarmCounts = [:]
            retries = [:]
            retryAt = nil
            outstanding = []
        }
    }

    /// Members that a connection was asked for at about the same time: sequence numbers above `after`, up to `through`.
    struct AskedRange: Sendable {
        let after: UInt64
        private(set) var through: UInt64
        let firstAskedAt: Instant
        private(set) var lastAskedAt: Instant
        private(set) var dueAt: Instant

        init(after: UInt64, through: UInt64, askedAt: Instant, dueAt: Instant) {
            (self.after, self.through, self.dueAt) = (after, through, dueAt)
            (firstAskedAt, lastAskedAt) = (askedAt, askedAt)
        }

        /// The rest of the range, above `after`.
        func from(_ after: UInt64) -> AskedRange {
            AskedRange(after: after, through: through, askedAt: firstAskedAt, dueAt: dueAt)
        }

        /// Adds the following members, asked for a little later. Postpones the renewal if it would be too early for them.
        mutating func extend(through: UInt64, at now: Instant, renewal: Duration) {
            self.through = through
            lastAskedAt = now
            dueAt = max(dueAt, now + renewal)
        }

        /// Whether the range may be renewed together with another range that is due.
        func mayBeRenewed(at now: Instant, after renewal: Duration) -> Bool { now >= dueAt || now - lastAskedAt >= renewal }
    }

    /// The accounts and servers of a swarm.
    struct Swarm: Sendable {
        struct Member: Sendable {
            let sequence: UInt64
            let slot: Int32
        }

        let id: UInt64
        var servers: [Int] = []
        /// Indexes of the servers that reported the swarm; nil for a swarm of the map.
        var sources: Set<Int>?
        /// When a swarm that is not in the map ends.
        var endsAt: Instant?
        /// In order of the sequence. Includes members that have left.
        private(set) var members: ContiguousArray<Member> = []
        var liveCount = 0

        init(id: UInt64, sources: Set<Int>? = nil, endsAt: Instant? = nil) {
            (self.id, self.sources, self.endsAt) = (id, sources, endsAt)
        }

        mutating func append(sequence: UInt64, slot: Int) {
            members.append(Member(sequence: sequence, slot: Int32(slot)))
            liveCount += 1
        }

        /// Removes the members that have left when they are the majority.
        mutating func compact(_ isLive: (Member) -> Bool) {
            guard members.count > 64, members.count > 2 * liveCount else { return }
            members.removeAll { !isLive($0) }
        }

        /// The member with a sequence number, also if it has left.
        func member(_ sequence: UInt64) -> Member? {
            let place = firstIndex(after: sequence - 1)
            return place < members.count && members[place].sequence == sequence ? members[place] : nil
        }

        /// Index of the first member with a higher sequence number.
        func firstIndex(after sequence: UInt64) -> Int {
            var (low, high) = (0, members.count)
            while low < high {
                let middle = (low + high) / 2
                if members[middle].sequence <= sequence { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }
}
