import NodeAPI
import DequeModule
import NodeMetrics
import Core
import SessionProtocol
import Storage
import Synchronization

/// Commits requests to the store, and informs the monitor of the changes.
final class SubscriptionCommits: Sendable {
    private let node: NodeServices
    private let subscriptions: Subscriptions
    private let limits: SessionLimits
    private let services: Set<PushService>
    private let monitor: any SubscriptionMonitoring
    private let timeout: AnswerTimeout
    private let pending: Mutex<PendingBodies>

    /// - Parameters:
    ///   - services: push services with a gorush endpoint.
    ///   - pendingByteLimit: limit of all bodies waiting for the store, in bytes.
    init(
        _ node: NodeServices, _ limits: SessionLimits, services: Set<PushService>, monitor: any SubscriptionMonitoring, timeout: Duration,
        sodium: Sodium, pendingByteLimit: Int
    ) {
        pending = Mutex(PendingBodies(byteLimit: pendingByteLimit))
        self.node = node
        self.limits = limits
        self.services = services
        self.monitor = monitor
        self.timeout = AnswerTimeout(timeout)
        subscriptions = Subscriptions(node.store.sealer, sodium: sodium)
    }

    /// Commits requests. Does not block; may be called on any thread.
    ///
    /// - Parameters:
    ///   - requests: the verified requests of one body.
    ///   - network: the network of the client, which pays for new subscriptions.
    ///   - completion: called once, on any thread, when the requests are durable, have failed, or the store has not answered in time.
    func commit(
        _ requests: [SessionRequest], of network: SenderNetwork, byteCount: Int, completion: @escaping @Sendable ([RequestAnswer]) -> Void
    ) {
        @Sendable func all(_ error: RequestError) -> [RequestAnswer] { requests.map { _ in .failed(error) } }
        guard !requests.isEmpty else { return completion([]) }
        if node.drain.isOn { return completion(all(.draining)) }
        guard pending.withLock({ $0.add(byteCount: byteCount) }) else { return completion(all(.overloaded)) }
        let answer = FirstAnswer { result in
            guard let result else { return completion(all(.storeTimeout)) }
            completion((try? result.get()) ?? all(.storeFailed))
        }
        timeout.watch(answer)
        submit(requests, of: network, byteCount: byteCount, answer: answer)
    }

    private func submit(_ requests: [SessionRequest], of network: SenderNetwork, byteCount: Int, answer: FirstAnswer) {
        let now = node.now()
        let rules = SubscriptionRules(
            availableServices: services, maximumDevicesPerAccount: limits.maximumDevicesPerAccount,
            maximumDevicesPerOrigin: limits.maximumDevicesPerOrigin)
        let command = subscriptions.apply(requests, rules, at: now.seconds) { [limits] in limits.admitsNew(from: network, at: now) }
        node.store.submit([command]) { [self] results in
            pending.withLock { $0.remove(byteCount: byteCount) }
            guard let result = results.first else { return answer.give(.failure(.storeFailed)) }
            switch result {
            case .success(let applied):
                // Even after the timeout, because the changes are stored.
                for change in applied.monitoring { monitor.apply(change) }
                limits.count(applied)
                node.counters.add(.sessionReplaced, applied.replaced.count)
                answer.give(.success(applied.answers))
            case .failure(let error):
                node.errors.log("failed to store subscriptions", reason: error.message, count: requests.count)
                answer.give(.failure(.storeFailed))
            }
        }
    }
}

/// Limits the memory of bodies waiting for the store while it hangs. Further bodies are refused at once.
struct PendingBodies {
    private static let countLimit = 4096

    private let byteLimit: Int
    private var count = 0
    private var byteCount = 0

    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    /// - Returns: false if the body is over the limit.
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

/// Completes once, with the first of two results: the store's answer, or a timeout.
private final class FirstAnswer: Sendable {
    typealias Value = Result<[RequestAnswer], RequestError>?

    private let waiting: Mutex<(@Sendable (Value) -> Void)?>

    init(_ completion: @escaping @Sendable (Value) -> Void) {
        waiting = Mutex(completion)
    }

    var isGiven: Bool { waiting.withLock { $0 == nil } }

    /// - Parameter value: nil for a timeout.
    func give(_ value: Value) {
        let completion = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        completion?(value)
    }
}

/// Times out answers of the store. A single task serves all of them: a task for each would cost as much as parsing a request.
private final class AnswerTimeout: Sendable {
    private struct State {
        /// Ordered by due time.
        var watched: Deque<(answer: FirstAnswer, due: Instant)> = []
        var isRunning = false

        /// - Returns: The due time of the first answer that is not given yet.
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

    /// Runs until nothing is watched.
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
