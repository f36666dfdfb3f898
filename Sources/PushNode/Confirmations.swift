import Waku

/// Decides which published answers are looked up in the relay's store, and which are published again. Publications, what was found, and time
/// come in; look-ups and repetitions go out.
///
///     published ──(by a peer)──▶ confirmed ◀──(found)──┐
///       ▲   └─(node alone)─▶ waiting ──(delay)──▶ looking up ──(late, too often, or store without any)──▶ given up
///       └──────────────(sealed again)◀──(not found)────┤
///                              waiting ◀──(store fails)┘
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
        var patience = Duration.seconds(10)
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

    /// An answer that is out, and by which messages: a list for each time that it was published.
    struct Sent: Sendable {
        let answer: Answer
        /// The messages that no peer confirmed. Never empty; nor is any of the lists.
        let publications: [[MessageHash]]
        /// Of the first publication.
        let publishedAt: Duration
        fileprivate var due = Duration.zero

        init(answer: Answer, publications: [[MessageHash]], publishedAt: Duration) {
            self.answer = answer
            self.publications = publications
            self.publishedAt = publishedAt
        }

        fileprivate var hashCount: Int { publications.reduce(0) { $0 + $1.count } }

        /// Whether one of its publications is whole.
        fileprivate func isThere(_ found: Set<MessageHash>) -> Bool {
            publications.contains { $0.allSatisfy(found.contains) }
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
        case found(Set<MessageHash>)
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
    private var missedInRow = 0
    private(set) var isIdle = false

    init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// - Returns: Whether there is room for it.
    mutating func add(_ sent: Sent, at now: Duration) -> Bool {
        let bytes = sent.answer.payload.count
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
            for hashes in queue[head].publications { batch.hashes += hashes }
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
            let isLate = now - sent.publishedAt >= configuration.patience
            switch finding {
            case .found(let hashes) where sent.isThere(hashes):
                missedInRow = 0
                outcome.confirmedCount += 1
            case .found:
                missedInRow += 1
                let isRepeated = !isLate && sent.publications.count <= configuration.repetitionLimit
                if isRepeated, missedInRow <= configuration.distrustLimit {
                    outcome.toRepeat.append(sent)
                } else {
                    outcome.givenUpCount += 1
                }
            case .failed where !isLate:
                toAskAgain.append(sent)
                continue
            case .failed, .impossible:
                outcome.givenUpCount += 1
            }
            count -= 1
            byteCount -= sent.answer.payload.count
        }
        if case .failed = finding { pausedUntil = now + configuration.pause }
        if !toAskAgain.isEmpty {
            queue.replaceSubrange(..<head, with: toAskAgain)
            head = 0
            isIdle = false
        }
        return outcome
    }
}
