import Synchronization

/// What is counted, by name. None of these says who.
public enum Counter: String, CaseIterable, Sendable {
    case foreign = "foreign"
    case duplicate = "duplicate"
    case registrationStored = "registration stored"
    case registrationEnded = "registration ended"
    case registrationRefused = "registration refused"
    case queryAnswered = "query answered"
    case queryUnanswered = "query unanswered"
    case topicKeyDerived = "topic key derived"
    case requestAnswered = "request answered"
    case notificationQueued = "notification queued"
    case notificationAccepted = "notification accepted by gorush"
    case notificationRefused = "notification refused by gorush"
    case notificationExpired = "notification expired"
    case notificationUnreadable = "notification unreadable in the outbox"
    case notificationRetried = "notification to be tried again"
    case notificationDropped = "notification dropped by the operator"
    case notificationEvicted = "notification dropped: outbox full"
    case postFailed = "post to gorush failed"
    case gorushOpened = "gorush given up for a while"
    case requestWhileOpen = "request answered at once: gorush takes no notifications"
    case notificationUncounted = "notification that gorush did not count"
    case tokenDead = "token dead"
    case tokenFailureUnmatched = "token failure that names no notification"
    case tokenDoubtful = "token doubtful"
    case tokenFailedOtherwise = "token failure that says nothing of the token"
    case tokenOperatorsMistake = "token failure by the operator's mistake"
    case tokenHeldOff = "token failure held off: too many fail alike"
    case tokenFailureStale = "token failure of a registration that is gone or newer"
    case tokenFailureRepeated = "token failure told before"
    case tokenRemoved = "registration ended: dead token"
    case tokenDisabled = "registration ended: token in doubt for too long"
    case tokenFailureLost = "token failure not stored"
    case feedbackReceived = "feedback received"
    case feedbackMalformed = "feedback malformed"
    case feedbackForbidden = "feedback without the secret"
    case feedbackShed = "feedback dropped: too much waits"
    case answerPublished = "answer published"
    case answerLost = "answer not published"
    case answerConfirmed = "answer confirmed"
    case answerRepeated = "answer published again"
    case answerUnconfirmed = "answer unconfirmed"
    case answerUnchecked = "answer not looked up: too many at once"
    case gapFound = "gap: messages may have been lost on a pubsub topic"
    case messageRecovered = "message that came from the store alone"
    case droppedOversized = "dropped: over 1 MiB"
    case droppedVersion = "dropped: not version 1"
    case droppedUndecryptable = "dropped: undecryptable"
    case droppedMalformedPayload = "dropped: malformed Waku payload"
    case droppedUnsigned = "dropped: unsigned Waku payload"
    case droppedMalformedEnvelope = "dropped: malformed envelope"
    case droppedOtherKind = "dropped: other kind"
    case droppedEmpty = "dropped: empty envelope"
    case droppedBadSignature = "dropped: bad signature"
    case droppedUnsealable = "dropped: registration that can't be unsealed"
    case droppedMalformedMessage = "dropped: malformed message"
    case droppedTooMany = "dropped: too many entries"
    case droppedOldRequest = "dropped: request too old"
    case droppedNoMessageID = "dropped: request without message id"
    case segment = "segment that completes nothing yet, or never will"
    case shedQuery = "shed: query while too much waits"
    case shedRequest = "shed: request while too much waits to be stored"
    case failedStore = "failed: the store did not keep it"
}

/// Counts since the start of the process.
public final class Counters: Sendable {
    private let counts = Mutex<[Counter: Int]>([:])

    public init() {}

    func add(_ counter: Counter, _ count: Int = 1) {
        guard count != 0 else { return }
        counts.withLock { $0[counter, default: 0] += count }
    }

    public var snapshot: [Counter: Int] { counts.withLock { $0 } }
}
