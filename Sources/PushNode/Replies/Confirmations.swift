import Waku

/// Decides which published answers are looked up in the relays' stores, and which are published again. Publications, what was found, and
/// time come in; look-ups, repetitions and verdicts on relays go out.
///
///     published ──(by a peer)──▶ confirmed ◀──(found)──┐
///       ▲   └─(node alone)─▶ waiting ──(delay)──▶ looking up ──(late, too often, or store without any)──▶ given up
///       └──────────────(sealed again)◀──(not found)────┤
///                              waiting ◀──(store fails)┘
///
/// With several relays the store of another relay than the one that published decides (``Evidence``): a relay that publishes nothing may
/// say what it likes, and keep what it likes in its own store.
///
/// Only what is not there is published again: a store that can't be asked says nothing, and a store that has none of very many answers keeps
/// none. Many answers make one look-up. What does not fit is not confirmed; its publication is not touched by that.
struct Confirmations {
    struct Configuration: Hashable, Sendable {
        /// From a publication to its look-up: a store needs a moment to keep a message, a client asks again after 3 s.
        var delay = Duration.seconds(1)
        /// What is due so much later is looked up along with what is due: few answers make few look-ups.
        var gathering = Duration.milliseconds(100)
        /// From the first publication on; afterwards nobody waits for the answer.
        var timeout = Duration.seconds(10)
        var repetitionLimit = 3
        /// After a look-up that failed.
        var pause = Duration.seconds(1)
        /// So many answers in a row that are not there tell of the store, not of the answers.
        var distrustLimit = 100
        /// Of messages in a look-up.
        var hashLimit = Publication.lookUpLimit
        /// Of answers that wait.
        var countLimit = 20_000
        /// Of their payloads together.
        var byteLimit = 16 << 20
    }

    /// A message of an answer, and the relays that took it.
    struct Message: Hashable, Sendable {
        let hash: MessageHash
        /// The relays' places in the operator's order.
        var places: Set<Int> = [0]
        /// Whether one of them said that a peer took it.
        var isVouchedFor = false
    }

    /// An answer that is out, and by which messages: a list for each time that it was published.
    struct Sent: Sendable {
        let answer: Reply
        /// The messages that are not confirmed beyond doubt. Never empty; nor is any of the lists.
        let publications: [[Message]]
        /// Of the first publication.
        let publishedAt: Duration
        fileprivate var due = Duration.zero

        init(answer: Reply, publications: [[Message]], publishedAt: Duration) {
            self.answer = answer
            self.publications = publications
            self.publishedAt = publishedAt
        }

        /// The relays by which it went out.
        var places: Set<Int> { Self.places(of: publications) }

        static func places(of publications: [[Message]]) -> Set<Int> {
            publications.reduce(into: []) { $0 = $1.reduce(into: $0) { $0.formUnion($1.places) } }
        }

        fileprivate var hashCount: Int { publications.reduce(0) { $0 + $1.count } }

        /// Whether one of its publications is whole.
        fileprivate func isThere(_ found: Set<MessageHash>) -> Bool {
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

    /// What a look-up brought.
    enum Finding: Sendable {
        case found(StoreFindings)
        /// The store can't be asked now.
        case failed
        /// There is no store.
        case impossible
    }

    /// What comes of a look-up.
    struct Outcome: Sendable {
        var confirmedCount = 0
        var givenUpCount = 0
        var toRepeat: [Sent] = []
        /// Which relays' publications arrived.
        var verdicts: [RelayVerdict] = []
    }

    private let configuration: Configuration
    /// By the time they are due. Those before `head` are gone.
    private var queue: [Sent] = []
    private var head = 0
    var limit: Int { configuration.countLimit }
    /// With those that are being looked up.
    private(set) var count = 0
    private(set) var byteCount = 0
    private var pausedUntil = Duration.zero
    /// Of answers in a row that a relay's store did not have.
    private var missedInRow: [Int: Int] = [:]
    private(set) var isIdle = false

    init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// - Returns: Whether there is room for it.
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
        guard head < queue.count else {
            isIdle = true
            return .idle
        }
        let start = max(queue[head].due, pausedUntil)
        guard now >= start else { return .wait(until: start) }
        var batch = Batch()
        while head < queue.count, queue[head].due <= now + configuration.gathering,
            batch.hashes.count + queue[head].hashCount <= configuration.hashLimit
        {
            batch.answers.append(queue[head])
            for messages in queue[head].publications { batch.hashes += messages.map(\.hash) }
            head += 1
        }
        if head == queue.count || head > 1000 {
            queue.removeSubrange(..<head)
            head = 0
        }
        return .lookUp(batch)
    }

    mutating func finish(_ batch: Batch, _ finding: Finding, at now: Duration) -> Outcome {
        var outcome = Outcome()
        var toAskAgain: [Sent] = []
        for sent in batch.answers {
            let isLate = now - sent.publishedAt >= configuration.timeout
            switch decide(on: sent, finding, isLate: isLate, verdicts: &outcome.verdicts) {
            case .confirmed: outcome.confirmedCount += 1
            case .missing where !isLate && sent.publications.count <= configuration.repetitionLimit: outcome.toRepeat.append(sent)
            case .missing, .unknown: outcome.givenUpCount += 1
            case .askAgain:
                toAskAgain.append(sent)
                continue
            }
            count -= 1
            byteCount -= sent.answer.byteCount
        }
        if case .failed = finding { pausedUntil = now + configuration.pause }
        if !toAskAgain.isEmpty {
            if case .failed = finding {
                queue.replaceSubrange(..<head, with: toAskAgain)
                head = 0
            } else {
                // Some stores answered: others' answers need not wait.
                for index in toAskAgain.indices { toAskAgain[index].due = now + configuration.pause }
                queue.append(contentsOf: toAskAgain)
            }
            isIdle = false
        }
        return outcome
    }

    private enum Decision {
        case confirmed, missing, unknown, askAgain
    }

    private mutating func decide(
        on sent: Sent, _ finding: Finding, isLate: Bool, verdicts: inout [RelayVerdict]
    ) -> Decision {
        switch finding {
        case .failed where !isLate: return .askAgain
        case .failed, .impossible: return sent.publications.contains { $0.allSatisfy(\.isVouchedFor) } ? .confirmed : .unknown
        case .found(let findings):
            for (place, found) in findings.found {
                missedInRow[place] = sent.isThere(found) ? 0 : missedInRow[place, default: 0] + 1
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
        // There is no more to be done for an answer than that two relays, or the only one of all that does, say to have published it.
        let claimed = Sent.places(of: zip(sent.publications, evidence).filter { $1.allSatisfy(\.isClaimed) }.map(\.0))
        if claimed.count > 1 || (!claimed.isEmpty && sent.places.count >= relayCount) { return .confirmed }
        let latest = evidence.last ?? []
        if latest.contains(where: \.isMissing) { return .missing }
        guard latest.contains(where: \.isUndecided) else { return .unknown }
        guard isLate else { return .askAgain }
        return latest.allSatisfy(\.isClaimed) ? .confirmed : .unknown
    }

    /// On the relays that published a message alone.
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
