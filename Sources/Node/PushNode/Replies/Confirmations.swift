import DequeModule
import NodeAPI
import Waku

/// Decides which published answers are looked up in the relays' stores, and which are published again. Publications, findings and time are
/// inputs; look-ups, answers to publish again and verdicts on relays are outputs.
///
///     published ──(by a peer)──▶ confirmed ◀──(found)──┐
///       ▲   └─(node alone)─▶ waiting ──(delay)──▶ looking up ──(late, too often, or store without any)──▶ given up
///       └──────────────(sealed again)◀──(not found)────┤
///                              waiting ◀──(store fails)┘
///
/// With several relays, the store of a relay other than the publishing one decides (``Evidence``): a relay that does not really publish could
/// report success, and have the message in its own store.
///
/// Only answers that are missing in a store are published again. A store that can't be queried is no evidence, and a store that has none of very
/// many answers evidently keeps none. One look-up is for many answers. Answers beyond the limits are published without confirmation.
struct Confirmations {
    struct Configuration: Hashable, Sendable {
        /// Delay from a publication to its look-up: a store needs a moment to store a message, and clients retry after 3 s.
        var delay = Duration.seconds(1)
        /// Answers that become due within this time are included in a look-up, so that there are fewer look-ups.
        var batchWindow = Duration.milliseconds(100)
        /// Time since the first publication after which an answer is given up, because no client waits any more.
        var timeout = Duration.seconds(10)
        let repetitionLimit = 3
        /// Delay after a look-up that failed.
        var retryDelay = Duration.seconds(1)
        /// Number of consecutive missing answers after which a store is assumed to keep none.
        var distrustLimit = 100
        /// Maximum number of messages in a look-up.
        let hashLimit = Publication.lookUpLimit
        /// Maximum number of waiting answers.
        var countLimit = 20_000
        /// Maximum size of their payloads together.
        var byteLimit = 16 << 20
    }

    /// A message of an answer, and the relays that took it.
    struct Message: Hashable, Sendable {
        let hash: MessageHash
        /// The relays' indices in the operator's order.
        var places: Set<Int> = [0]
        /// Whether one of them reported that a peer took it.
        var isAcknowledged = false
    }

    /// A published answer, with the messages of each of its publications.
    struct Sent: Sendable {
        let answer: Reply
        /// The messages that still need confirmation. Neither the list nor any of its elements is empty.
        let publications: [[Message]]
        /// The time of the first publication.
        let publishedAt: Duration
        fileprivate var due = Duration.zero

        init(answer: Reply, publications: [[Message]], publishedAt: Duration) {
            self.answer = answer
            self.publications = publications
            self.publishedAt = publishedAt
        }

        /// The relays that published it.
        var places: Set<Int> { Self.places(of: publications) }

        static func places(of publications: [[Message]]) -> Set<Int> {
            publications.reduce(into: []) { $0 = $1.reduce(into: $0) { $0.formUnion($1.places) } }
        }

        fileprivate var hashCount: Int { publications.reduce(0) { $0 + $1.count } }

        /// Whether all messages of one publication were found.
        fileprivate func isComplete(in found: Set<MessageHash>) -> Bool {
            publications.contains { $0.allSatisfy { found.contains($0.hash) } }
        }
    }

    struct Batch: Sendable {
        fileprivate var answers: [Sent] = []
        fileprivate(set) var hashes: [MessageHash] = []
    }

    enum Action: Sendable {
        case lookUp(Batch)
        case wait(until: Duration)
        /// Until an answer is added.
        case idle
    }

    /// The result of a look-up.
    enum Finding: Sendable {
        case found(StoreFindings)
        /// The store can't be queried now.
        case failed
        /// There is no store.
        case impossible
    }

    /// The consequences of a look-up.
    struct Outcome: Sendable {
        var confirmedCount = 0
        var givenUpCount = 0
        var toRepublish: [Sent] = []
        /// Whether publications of relays arrived.
        var verdicts: [RelayVerdict] = []
    }

    private let configuration: Configuration
    /// Ordered by due time. Without those that are being looked up.
    private var queue: Deque<Sent> = []
    var limit: Int { configuration.countLimit }
    /// Waiting answers, including those that are being looked up.
    private(set) var count = 0
    private(set) var byteCount = 0
    private var pausedUntil = Duration.zero
    /// Number of consecutive answers that a relay's store did not have, by place.
    private var missedInRow: [Int: Int] = [:]
    private(set) var isIdle = false

    init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// - Returns: whether it is within the limits.
    mutating func add(_ sent: Sent, at now: Duration) -> Bool {
        let bytes = sent.answer.byteCount
        guard count < configuration.countLimit, byteCount + bytes <= configuration.byteLimit, sent.hashCount <= configuration.hashLimit
        else { return false }
        count += 1
        byteCount += bytes
        var sent = sent
        sent.due = now + configuration.delay
        queue.append(sent)
        isIdle = false
        return true
    }

    mutating func next(at now: Duration) -> Action {
        guard let first = queue.first else {
            isIdle = true
            return .idle
        }
        let start = max(first.due, pausedUntil)
        guard now >= start else { return .wait(until: start) }
        var batch = Batch()
        while let next = queue.first, next.due <= now + configuration.batchWindow,
            batch.hashes.count + next.hashCount <= configuration.hashLimit
        {
            batch.answers.append(next)
            for messages in next.publications { batch.hashes += messages.map(\.hash) }
            queue.removeFirst()
        }
        return .lookUp(batch)
    }

    mutating func finish(_ batch: Batch, _ finding: Finding, at now: Duration) -> Outcome {
        var outcome = Outcome()
        var toLookUpAgain: [Sent] = []
        for sent in batch.answers {
            let isLate = now - sent.publishedAt >= configuration.timeout
            switch decide(on: sent, finding, isLate: isLate, verdicts: &outcome.verdicts) {
            case .confirmed: outcome.confirmedCount += 1
            case .missing where !isLate && sent.publications.count <= configuration.repetitionLimit: outcome.toRepublish.append(sent)
            case .missing, .unknown: outcome.givenUpCount += 1
            case .lookUpAgain:
                toLookUpAgain.append(sent)
                continue
            }
            count -= 1
            byteCount -= sent.answer.byteCount
        }
        if case .failed = finding { pausedUntil = now + configuration.retryDelay }
        if !toLookUpAgain.isEmpty {
            if case .failed = finding {
                queue.prepend(contentsOf: toLookUpAgain)
            } else {
                // Some stores answered, so the other answers need not wait.
                for index in toLookUpAgain.indices { toLookUpAgain[index].due = now + configuration.retryDelay }
                queue.append(contentsOf: toLookUpAgain)
            }
            isIdle = false
        }
        return outcome
    }

    private enum Decision {
        case confirmed, missing, unknown, lookUpAgain
    }

    private mutating func decide(
        on sent: Sent, _ finding: Finding, isLate: Bool, verdicts: inout [RelayVerdict]
    ) -> Decision {
        switch finding {
        case .failed where !isLate: return .lookUpAgain
        case .failed, .impossible: return sent.publications.contains { $0.allSatisfy(\.isAcknowledged) } ? .confirmed : .unknown
        case .found(let findings):
            for (place, found) in findings.found {
                missedInRow[place] = sent.isComplete(in: found) ? 0 : missedInRow[place, default: 0] + 1
            }
            let keepers = Set(findings.found.keys.filter { missedInRow[$0, default: 0] <= configuration.distrustLimit })
            let evidence = sent.publications.map { $0.map { Evidence(of: $0, findings, keepers: keepers) } }
            for (messages, evidence) in zip(sent.publications, evidence) {
                let isLast = messages == sent.publications.last
                verdicts += Self.verdicts(on: messages, evidence).filter { $0.isConfirmed || isLast }
            }
            return Self.decide(sent, evidence, relayCount: findings.relayCount, isLate: isLate)
        }
    }

    private static func decide(_ sent: Sent, _ evidence: [[Evidence]], relayCount: Int, isLate: Bool) -> Decision {
        if evidence.contains(where: { $0.allSatisfy(\.isConfirmed) }) { return .confirmed }
        // An answer that two relays, or the only relay, claim to have published can't be improved by publishing it again.
        let claimed = Sent.places(of: zip(sent.publications, evidence).filter { $1.allSatisfy(\.isClaimed) }.map(\.0))
        if claimed.count > 1 || (!claimed.isEmpty && sent.places.count >= relayCount) { return .confirmed }
        let latest = evidence.last ?? []
        if latest.contains(where: \.isMissing) { return .missing }
        guard latest.contains(where: \.isUndecided) else { return .unknown }
        guard isLate else { return .lookUpAgain }
        return latest.allSatisfy(\.isClaimed) ? .confirmed : .unknown
    }

    /// Verdicts on relays that were the only publisher of a message.
    private static func verdicts(on messages: [Message], _ evidence: [Evidence]) -> [RelayVerdict] {
        zip(messages, evidence).compactMap { message, evidence in
            guard message.places.count == 1, let place = message.places.first else { return nil }
            switch evidence {
            case .confirmed: return RelayVerdict(place: place, isConfirmed: true)
            case .missing(let isClaimed, let witnesses):
                return RelayVerdict(place: place, isConfirmed: false, isClaimed: isClaimed, deniedBy: witnesses)
            case .undecided, .unknown: return nil
            }
        }
    }
}
