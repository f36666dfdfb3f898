@testable import Cluster

/// A message of the simulation; its number stands for its content.
struct SimulatedMessage {
    enum Kind { case registration, request, query, junk }

    let number: Int
    let key: MessageKey
    let kind: Kind
    let device: Int
    let sentAt: Milliseconds
}

/// The rows of the cluster on one server. A transaction is executed as a whole, at one moment.
struct SimulatedDatabase {
    /// Claims need hours; the simulation takes a minute. So their clock is faster: 2 h are 48 s.
    static let claimSecondsPerSecond = 150

    struct OutboxRow {
        let id: Int
        let message: Int
        let device: Int
        let partition: PartitionNumber
        var mark: DeliveryMark?
        /// Of the first mark, if no release has removed it.
        var markedAt: Milliseconds?
        /// When the transaction that inserted it took its id from the sequence.
        let began: Milliseconds
        let committedAt: Milliseconds
    }

    struct StoredClaim {
        let node: NodeID
        let kind: Claim.Kind
        let row: Int?
        let hour: ClaimWindow.Hour
    }

    /// A transaction, or a read.
    enum Request {
        case heartbeat(Heartbeat)
        case handle(SimulatedMessage, by: NodeID, partition: PartitionNumber, mark: DeliveryMark?)
        case writeFinished(FinishedLog.Row)
        case readFinished([NodeID: Int64], except: NodeID)
        case lookUpClaims([Int])
        case readRows([PartitionNumber: UInt64], beyond: Int)
        case mark(Int, DeliveryMark)
        case recordAccepted(Int, DeliveryMark)
        case maintain(DeliveryMark)
        case storedAnswer(Int)
        case takeOverAnswer(Int, by: NodeID)

        var isRead: Bool {
            switch self {
            case .readFinished, .lookUpClaims, .readRows, .storedAnswer: true
            default: false
            }
        }
    }

    enum Reply {
        case heartbeat(ClusterView, endedLeases: Int, takes: Int, releases: Int)
        /// The effect is stored, now or by an earlier run of this transaction.
        case stored(row: OutboxRow?, isNew: Bool)
        case claimed(Claim.Kind)
        /// Too old or too far in the future.
        case refused
        case done(Bool)
        case finishedRows([FinishedLog.Row])
        case claims([Int: Claim])
        case rows([OutboxRow], [PartitionNumber: UInt64])
        case answer(isAccepted: Bool)
        /// Nothing was committed, for certain.
        case failed
        case unknown
    }

    var leases: [NodeID: LeaseRow] = [:]
    /// By this server's clock; compared only under a mutation.
    var leaseUntil: [NodeID: Milliseconds] = [:]
    var partitions: [PartitionRow]
    var claims: [Int: StoredClaim] = [:]
    var claimWindow = ClaimWindow(firstHour: 0)
    var lastClaimHour: ClaimWindow.Hour = 2
    var finished: [NodeID: [FinishedLog.Row]] = [:]
    var outbox: [Int: OutboxRow] = [:]
    /// The time at which the outcome was committed.
    var accepted: [Int: Milliseconds] = [:]
    var acceptedMessages: Set<Int> = []
    /// Also of marks that were removed.
    var firstMarks: [Int: Milliseconds] = [:]
    /// Effects by message.
    var effects: [Int: Int] = [:]
    var configuration: ClusterConfiguration
    var mutation: Mutation?

    init(_ configuration: ClusterConfiguration, mutation: Mutation?) {
        self.configuration = configuration
        self.mutation = mutation
        partitions = [PartitionRow](repeating: PartitionRow(), count: configuration.partitionRowCount)
    }

    static func claimTime(_ time: Milliseconds) -> Int64 { Int64(time) * Int64(claimSecondsPerSecond) / 1000 }

    /// - Parameters:
    ///   - row: the id that the transaction took from the sequence.
    ///   - now: true time.
    ///   - clock: this server's clock.
    mutating func execute(
        _ request: Request, row: Int, began: Milliseconds, at now: Milliseconds, clock: Milliseconds
    ) -> Reply {
        switch request {
        case .heartbeat(let heartbeat): return beat(heartbeat, clock: clock)
        case .handle(let message, let node, let partition, let mark):
            return handle(message, node, partition, mark, row: row, began: began, at: now, clock: clock)
        case .writeFinished(let row):
            var rows = finished[row.node] ?? []
            rows.removeAll { $0.sequence <= row.deleteUpTo }
            if !rows.contains(where: { $0.sequence == row.sequence }) { rows.append(row) }
            finished[row.node] = rows
            return .done(true)
        case .readFinished(let cursors, let own):
            var found: [FinishedLog.Row] = []
            for (node, rows) in finished where node != own {
                let cursor = cursors[node] ?? 0
                for row in rows where row.sequence > cursor { found.append(row) }
            }
            return .finishedRows(found)
        case .lookUpClaims(let messages):
            var found: [Int: Claim] = [:]
            for message in messages {
                if let claim = claims[message] { found[message] = Claim(node: claim.node, kind: claim.kind) }
            }
            return .claims(found)
        case .readRows(let owned, let last):
            return .rows(outbox.values.filter { owned[$0.partition] != nil && $0.id > last }, owned)
        case .mark(let id, let mark): return .done(setMark(id, mark, at: now))
        case .recordAccepted(let id, let mark): return .done(recordAccepted(id, mark, at: now))
        case .maintain(let mark): return .done(maintain(mark, clock: clock))
        case .storedAnswer(let message): return .answer(isAccepted: acceptedMessages.contains(message))
        case .takeOverAnswer(let message, let node):
            guard let claim = claims[message] else { return .done(false) }
            claims[message] = StoredClaim(node: node, kind: claim.kind, row: claim.row, hour: claim.hour)
            return .answer(isAccepted: acceptedMessages.contains(message))
        }
    }

    private mutating func beat(_ heartbeat: Heartbeat, clock: Milliseconds) -> Reply {
        let node = heartbeat.lease.node
        var row = leases[node]
        if heartbeat.isFirst, row == nil { row = heartbeat.lease }
        var figures = (ended: 0, takes: 0, releases: 0)
        if var row, row.state != .ended {
            row.renewals += 1
            row.state = heartbeat.lease.state
            leases[node] = row
            leaseUntil[node] = clock + configuration.lease.milliseconds
            var ends = heartbeat.ends
            if mutation == .leasesByDatabaseClock {
                ends = leases.values.filter { $0.state != .ended && (leaseUntil[$0.node] ?? 0) < clock }
                    .map { Heartbeat.LeaseEnd(node: $0.node, renewals: $0.renewals) }
            }
            for end in ends where leases[end.node]?.renewals == end.renewals && leases[end.node]?.state != .ended {
                leases[end.node]?.state = .ended
                figures.ended += 1
            }
            for release in heartbeat.releases {
                guard partitions[release.partition] == PartitionRow(owner: node, epoch: release.epoch) else { continue }
                partitions[release.partition].owner = nil
                figures.releases += 1
                guard release.isSettled else { continue }
                let mark = DeliveryMark(owner: node, epoch: release.epoch)
                for row in outbox.values where row.partition == release.partition && row.mark == mark {
                    outbox[row.id]?.mark = nil
                    outbox[row.id]?.markedAt = nil
                }
            }
            for take in heartbeat.takes {
                let partition = partitions[take.partition]
                guard partition.epoch == take.observedEpoch else { continue }
                if let owner = partition.owner, let lease = leases[owner], lease.state != .ended { continue }
                partitions[take.partition] = PartitionRow(owner: node, epoch: partition.epoch + 1)
                figures.takes += 1
            }
            return .heartbeat(
                ClusterView(isMember: true, leases: Array(leases.values), partitions: partitions), endedLeases: figures.ended,
                takes: figures.takes, releases: figures.releases)
        }
        return .heartbeat(
            ClusterView(isMember: false, leases: Array(leases.values), partitions: partitions), endedLeases: 0, takes: 0, releases: 0)
    }

    private mutating func handle(
        _ message: SimulatedMessage, _ node: NodeID, _ partition: PartitionNumber, _ mark: DeliveryMark?, row id: Int,
        began: Milliseconds, at now: Milliseconds, clock: Milliseconds
    ) -> Reply {
        let hour: ClaimWindow.Hour
        switch claimWindow.verdict(timestamp: Self.claimTime(message.sentAt), now: Self.claimTime(clock)) {
        case .claim(let claimed) where claimed <= lastClaimHour: hour = claimed
        case .tooOld where message.kind == .registration:
            return store(message, claim: nil)
        default: return .refused
        }
        if let claim = claims[message.number], mutation != .claimsByReading {
            guard claim.node == node else { return .claimed(claim.kind) }
            return .stored(row: claim.row.flatMap { outbox[$0] }, isNew: false)
        }
        guard message.kind == .request else {
            return store(message, claim: StoredClaim(node: node, kind: .registration, row: nil, hour: hour))
        }
        effects[message.number, default: 0] += 1
        claims[message.number] = StoredClaim(node: node, kind: .request, row: id, hour: hour)
        var row = OutboxRow(
            id: id, message: message.number, device: message.device, partition: partition, mark: nil, began: began, committedAt: now)
        // Posted at once, when no row of the device waits.
        let others = outbox.values.contains { $0.device == message.device }
        if let mark, isCurrent(mark, partition), !others || mutation == .ignoresEarlierRows {
            (row.mark, row.markedAt) = (mark, now)
            firstMarks[id] = now
        }
        outbox[id] = row
        return .stored(row: row, isNew: true)
    }

    /// A registration. The registrant's row has the hash of the message that it was stored with, which decides regardless of claims: the message may
    /// have been stored without a claim, as too old by a clock that was set back since.
    private mutating func store(_ message: SimulatedMessage, claim: StoredClaim?) -> Reply {
        claims[message.number] = claim
        let isNew = effects[message.number] == nil || mutation == .claimsByReading
        if isNew { effects[message.number, default: 0] += 1 }
        return .stored(row: nil, isNew: isNew)
    }

    private func isCurrent(_ mark: DeliveryMark, _ partition: PartitionNumber) -> Bool {
        partitions[partition] == PartitionRow(owner: mark.owner, epoch: mark.epoch) || mutation == .marksWithoutEpoch
    }

    private mutating func setMark(_ id: Int, _ mark: DeliveryMark, at now: Milliseconds) -> Bool {
        guard let row = outbox[id], isCurrent(mark, row.partition) else { return false }
        let hasEarlier = outbox.values.contains { $0.device == row.device && $0.id < id }
        guard !hasEarlier || mutation == .ignoresEarlierRows else { return false }
        outbox[id]?.mark = mark
        outbox[id]?.markedAt = row.markedAt ?? now
        firstMarks[id] = firstMarks[id] ?? now
        return true
    }

    /// - Returns: false when another owner has marked the row since.
    private mutating func recordAccepted(_ id: Int, _ mark: DeliveryMark, at now: Milliseconds) -> Bool {
        guard let row = outbox[id] else { return accepted[id] != nil }
        guard row.mark == mark || mutation == .postsWithoutMark else { return false }
        outbox[id] = nil
        accepted[id] = now
        acceptedMessages.insert(row.message)
        return true
    }

    private mutating func maintain(_ mark: DeliveryMark, clock: Milliseconds) -> Bool {
        guard partitions[configuration.maintenancePartition] == PartitionRow(owner: mark.owner, epoch: mark.epoch) else { return false }
        if mutation == .forgetsFirstHour { claimWindow = ClaimWindow(firstHour: 0) }
        let (create, dropBefore) = claimWindow.maintain(now: Self.claimTime(clock))
        lastClaimHour = max(lastClaimHour, create.upperBound)
        claims = claims.filter { $0.value.hour >= dropBefore }
        return true
    }
}
