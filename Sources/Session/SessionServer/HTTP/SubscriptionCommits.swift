import NodeAPI
import DequeModule
import Logging
import NodeMetrics
import Core
import SessionProtocol
import SessionSwarms
import Storage
import Synchronization

/// Takes requests to the store, and tells the monitor what became of them.
final class SubscriptionCommits: Sendable {
    private let node: NodeServices
    private let subscriptions: Subscriptions
    private let gate: SessionGate
    private let services: Set<PushService>
    private let monitor: any SubscriptionMonitoring
    private let timeout: AnswerTimeout
    private let pending: Mutex<PendingBodies>

    /// - Parameters:
    ///   - node: whose store it is.
    ///   - gate: limits.
    ///   - services: those that a gorush endpoint serves.
    ///   - monitor: is told of changes.
    ///   - timeout: of an answer.
    ///   - pendingByteLimit: of bodies that wait for the store.
    init(
        _ node: NodeServices, _ gate: SessionGate, services: Set<PushService>, monitor: any SubscriptionMonitoring, timeout: Duration,
        pendingByteLimit: Int
    ) {
        pending = Mutex(PendingBodies(byteLimit: pendingByteLimit))
        self.node = node
        self.gate = gate
        self.services = services
        self.monitor = monitor
        self.timeout = AnswerTimeout(timeout)
        subscriptions = Subscriptions(node.store.sealer)
    }

    /// Commits requests, on any thread: it does not wait.
    ///
    /// - Parameters:
    ///   - requests: of one body, verified.
    ///   - byteCount: of the body.
    ///   - completion: called once, on any thread, when the requests are durable, have failed, or the store did not answer in time.
    func commit(_ requests: [SessionRequest], byteCount: Int, completion: @escaping @Sendable ([RequestAnswer]) -> Void) {
        @Sendable func all(_ error: RequestError) -> [RequestAnswer] { requests.map { _ in .failed(error) } }
        guard !requests.isEmpty else { return completion([]) }
        if node.drain.isOn { return completion(all(.draining)) }
        guard pending.withLock({ $0.add(byteCount: byteCount) }) else { return completion(all(.storeTimeout)) }
        let answer = FirstAnswer { result in
            guard let result else { return completion(all(.storeTimeout)) }
            completion((try? result.get()) ?? all(.storeFailed))
        }
        timeout.watch(answer)
        submit(requests, byteCount, answer)
    }

    private func submit(_ requests: [SessionRequest], _ byteCount: Int, _ answer: FirstAnswer) {
        let now = node.now()
        let rules = SubscriptionRules(availableServices: services, maximumDevicesPerAccount: gate.maximumDevicesPerAccount)
        let command = subscriptions.apply(requests, rules, at: now.seconds) { [gate] in gate.admitsNew(at: now) }
        node.store.submit([command]) { [self] results in
            pending.withLock { $0.remove(byteCount: byteCount) }
            guard let result = results.first else { return answer.give(.failure(.storeFailed)) }
            switch result {
            case .success(let applied):
                // Also after the timeout: it is stored.
                for change in applied.monitoring { monitor.apply(change) }
                gate.count(applied.answers)
                answer.give(.success(applied.answers))
            case .failure(let error):
                node.errors.log("subscriptions not stored", reason: error.message, count: requests.count)
                answer.give(.failure(.storeFailed))
            }
        }
    }
}

/// Bodies that wait for the store, which must not fill the memory while it hangs: others are refused at once.
struct PendingBodies {
    private static let countLimit = 4096

    private let byteLimit: Int
    private var count = 0
    private var byteCount = 0

    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    /// - Returns: false when it is one too many.
    mutating func add(byteCount size: Int) -> Bool {
        guard count < Self.countLimit, size <= byteLimit - byteCount else { return false }
        count += 1
        byteCount += size
        return true
    }

    mutating func remove(byteCount size: Int) {
        count -= 1
        byteCount -= size
    }
}

/// The first of two answers: the store's, or that there was none in time.
private final class FirstAnswer: Sendable {
    typealias Value = Result<[RequestAnswer], RequestError>?

    private let waiting: Mutex<(@Sendable (Value) -> Void)?>

    init(_ completion: @escaping @Sendable (Value) -> Void) {
        waiting = Mutex(completion)
    }

    var isGiven: Bool { waiting.withLock { $0 == nil } }

    /// - Parameter value: nil: there was no answer in time.
    func give(_ value: Value) {
        let completion = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        completion?(value)
    }
}

/// Ends waiting for answers that the store does not give in time. One task for all of them: one for each would cost as much as parsing a request.
private final class AnswerTimeout: Sendable {
    private struct State {
        /// In the order of their times.
        var watched: Deque<(answer: FirstAnswer, due: Instant)> = []
        var isRunning = false

        /// - Returns: When the first that is not given is due.
        mutating func next() -> Instant? {
            while let first = watched.first, first.answer.isGiven { watched.removeFirst() }
            return watched.first?.due
        }
    }

    private let timeout: Duration
    private let state = Mutex(State())

    init(_ timeout: Duration) {
        self.timeout = timeout
    }

    func watch(_ answer: FirstAnswer) {
        let mustRun = state.withLock { state in
            _ = state.next()
            state.watched.append((answer, .now + timeout))
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustRun { Task { await run() } }
    }

    /// Until nothing is watched.
    private func run() async {
        while let due = nextDue() {
            try? await due.sleep()
            while let late = takeLate() { late.give(nil) }
        }
    }

    private func nextDue() -> Instant? {
        state.withLock { state in
            let due = state.next()
            state.isRunning = due != nil
            return due
        }
    }

    private func takeLate() -> FirstAnswer? {
        state.withLock { state in
            guard let due = state.next(), due <= .now else { return nil }
            return state.watched.popFirst()?.answer
        }
    }
}
