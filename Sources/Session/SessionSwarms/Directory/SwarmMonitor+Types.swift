import Core
package import SessionProtocol

/// Names a subscription to the store.
package struct SubscriptionID: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }
}

/// A connection or an attempt at one; never used twice, so that what an old one still says is not taken for a new one's.
package struct ConnectionNumber: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Names a request; never used twice.
package struct RequestTag: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

extension SwarmMonitor {
    package struct Configuration: Hashable, Sendable {
        /// `--session-renewal`: the shortest time after which a subscription is asked for again. Storage servers forget after 65 minutes.
        package var renewal: Duration = .seconds(45 * 60)
        /// Up to this part of ``renewal`` is added at random.
        package var renewalSpread = 0.22
        /// From the beginning of a connection to HELLO.
        package var connectTimeout: Duration = .seconds(30)
        package var replyTimeout: Duration = .seconds(60)
        /// Before the next attempt, by the number of failures in a row; the last for all further ones.
        package var pauses: [Duration] = [.seconds(10), .seconds(30), .seconds(60), .seconds(120)]
        /// A connection that lasted as long without a fault ends the row of failures.
        package var stableConnection: Duration = .seconds(60)
        package var maximumConnecting = 500
        /// Of the body of a request.
        package var maximumRequestByteCount = MonitorEntry.maximumRequestByteCount
        /// Of all requests without an answer: bounds the memory that a start takes.
        package var maximumUnansweredByteCount = 64 << 20
        /// Of a request.
        package var maximumRequestEntryCount = Int.max
        /// Between two requests for the map because of errcode 6.
        package var mapInterval: Duration = .seconds(60)
        /// Between two swarms that an account is sent to by storage servers.
        package var moveInterval: Duration = .seconds(1)
        /// Within which accounts that are sent to a swarm are gathered.
        package var moveGathering: Duration = .milliseconds(50)
        /// How long an account is asked for where a storage server sent it, unless it is sent there again: renewals ask where the map says, too.
        package var moveLifetime: Duration = .seconds(65 * 60)
        /// How long servers that were named by others are kept when the map knows their swarm: until those of the map are connected.
        package var moveLinger: Duration = .seconds(60)

        package init() {}

        /// What is asked within this time is renewed together: so that there are not too many ranges to keep. A part of what renewals are spread over.
        var gathering: Duration { min(.seconds(60), renewal * renewalSpread / 4) }

        func pause(afterFailures failures: Int) -> Duration {
            pauses.isEmpty ? .zero : pauses[min(max(failures, 1), pauses.count) - 1]
        }
    }

    package enum Action: Hashable, Sendable {
        /// Followed by ``connected(_:at:)`` or ``failed(_:at:)``.
        case connect(ConnectionNumber, StorageServer)
        case close(ConnectionNumber)
        /// `monitor.messages` with the entries of these subscriptions, in this order; followed by ``replied(_:_:at:)`` or ``refused(_:at:)``. A subscription that is gone
        /// by then may be replaced by any other entry, but not left out.
        case ask(ConnectionNumber, RequestTag, [SubscriptionID])
        /// A storage server says that its swarm is another.
        case requestMap
    }

    /// A request that has no answer yet.
    struct Request: Sendable {
        let server: Int
        let sequences: [UInt64]
        let byteCount: Int
        let deadline: Instant
    }

    /// A storage server of the map.
    struct Server: Sendable {
        enum State: Sendable {
            case idle(retryAt: Instant)
            case connecting(ConnectionNumber, deadline: Instant)
            case connected(ConnectionNumber, since: Instant)
            /// Gone from the map: the place is free.
            case unused
        }

        var description: StorageServer
        /// Index of its swarm.
        var swarm: Int
        var state: State
        /// Named by another storage server, and not of the map.
        var isNamed = false
        /// Notices about accounts that the map has moved away, and that the server may still send.
        var lateEndings = 0
        /// In a row: since it last answered a request, or had a connection for a while. HELLO alone is not enough, or a server that never answers
        /// would be connected every 10 s.
        var failures = 0
        /// It was asked for all members of its swarm up to this number.
        var askedThrough: UInt64 = 0
        /// What it was asked for, in order of the sequence, without overlaps.
        var ranges: [AskedRange] = []
        var refused: [UInt64: MonitorRefusal] = [:]
        /// How often each was refused with errcode 6 in a row.
        var wrongSwarmCounts: [UInt64: Int] = [:]
        /// Refused with errcode 6, and when they are asked for again.
        var retries: [UInt64: Instant] = [:]
        /// The earliest of these times, or before it.
        var retryAt: Instant?
        /// Requests without an answer, oldest first.
        var outstanding: [(tag: RequestTag, deadline: Instant)] = []
        var isInBacklog = false
        var wakeUp: Instant?

        var oldestDeadline: Instant? { outstanding.first?.deadline }

        mutating func updateWakeUp() {
            wakeUp = nil
            switch state {
            case .idle, .unused: return
            case .connecting(_, let deadline): wakeUp = deadline
            case .connected:
                var times = [oldestDeadline, retryAt].compactMap { $0 }
                // What waits for others' answers is not a matter of time.
                if !isInBacklog, let due = ranges.lazy.map(\.dueAt).min() { times.append(due) }
                wakeUp = times.min()
            }
        }

        /// A connection begins or ends: nothing was asked.
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

    /// Members that a connection was asked for at about the same time: those with numbers above `after`, up to `through`.
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

        /// The part that is still to be asked.
        func from(_ after: UInt64) -> AskedRange {
            AskedRange(after: after, through: through, askedAt: firstAskedAt, dueAt: dueAt)
        }

        /// Takes the members that follow, asked a little later; they are not renewed too early by that.
        mutating func extend(through: UInt64, at now: Instant, renewal: Duration) {
            self.through = through
            lastAskedAt = now
            dueAt = max(dueAt, now + renewal)
        }

        /// Before it is due, along with another range that is.
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
        /// Indexes of the servers that named it; nil for a swarm of the map.
        var sources: Set<Int>?
        /// Of one that is not of the map.
        var endsAt: Instant?
        /// In order of the sequence. Some have left.
        private(set) var members: ContiguousArray<Member> = []
        var liveCount = 0

        init(id: UInt64, sources: Set<Int>? = nil, endsAt: Instant? = nil) {
            (self.id, self.sources, self.endsAt) = (id, sources, endsAt)
        }

        mutating func append(sequence: UInt64, slot: Int) {
            members.append(Member(sequence: sequence, slot: Int32(slot)))
            liveCount += 1
        }

        /// Forgets those that have left, when they are the majority.
        mutating func compact(_ isLive: (Member) -> Bool) {
            guard members.count > 64, members.count > 2 * liveCount else { return }
            members.removeAll { !isLive($0) }
        }

        /// Index of the first member with a higher number.
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
