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
    private let pending: Mutex<PendingBodies<Waiting>>

    /// A body on its way to the store.
    private typealias Waiting = (command: StoreCommand<AppliedRequests>, answer: FirstAnswer)

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
        let now = node.now()
        let rules = SubscriptionRules(
            availableServices: services, maximumDevicesPerAccount: limits.maximumDevicesPerAccount,
            maximumDevicesPerOrigin: limits.maximumDevicesPerOrigin)
        let command = subscriptions.apply(
            requests, rules, at: now.seconds, isDraining: { [drain = node.drain] in drain.isOn },
            refusesNew: { [limits] in limits.admitsNew($0, from: network, at: now) })
        let answer = FirstAnswer { result in
            guard let result else { return completion(all(.storeTimeout)) }
            completion((try? result.get()) ?? all(.storeFailed))
        }
        let size = PendingBodySize(network: network, byteCount: byteCount, requestCount: requests.count)
        guard pending.withLock({ $0.add((command, answer), size) }) else { return completion(all(.overloaded)) }
        timeout.watch(answer)
        submitNext()
    }

    private func submitNext() {
        while let (body, size) = pending.withLock({ $0.next() }) {
            // Its client was told that nothing is known of its requests.
            if body.answer.isGiven { pending.withLock { $0.finish(size) } } else { submit(body, size) }
        }
    }

    private func submit(_ body: Waiting, _ size: PendingBodySize) {
        let answer = body.answer
        node.store.submit([body.command]) { [self] results in
            pending.withLock { $0.finish(size) }
            defer { submitNext() }
            guard let result = results.first else { return answer.give(.failure(.storeFailed)) }
            switch result {
            case .success(let applied):
                // Even after the timeout, because the changes are stored.
                for change in applied.monitoring { monitor.apply(change) }
                limits.count(applied)
                node.counters.add(.sessionReplaced, applied.replaced.count)
                answer.give(.success(applied.answers))
            case .failure(let error):
                node.errors.log("failed to store subscriptions", reason: error.message, count: size.requestCount)
                answer.give(.failure(.storeFailed))
            }
        }
    }
}

/// The memory and the turn of a body until its requests are committed.
struct PendingBodySize: Hashable, Sendable {
    let network: SenderNetwork
    let byteCount: Int
    let requestCount: Int
}

/// Bodies that wait for the store. A value without I/O.
///
/// The store carries out commands in order, so only a few bodies are there at a time. Further ones wait here, and client networks take turns by the
/// number of their requests: a network with many or large bodies delays only itself. Their memory is divided as ``BodyRoom`` does it; bodies beyond
/// are refused at once.
struct PendingBodies<Body: Sendable>: Sendable {
    struct Limits: Hashable, Sendable {
        /// Bodies of all networks.
        var bodyCount = 4096
        /// No further body is given to the store while it has this many requests.
        var submittedCount = 512
    }

    /// The number of requests per turn.
    private static var quantum: Int { 64 }

    private let limits: Limits
    private let leastByteCount: Int
    private var room: BodyRoom<Void>
    private var turns = DeficitTurns<SenderNetwork, (body: Body, size: PendingBodySize)>(
        quantum: quantum, costLimit: RequestBody.maximumEntryCount)
    private var submittedCount = 0

    /// - Parameter byteLimit: of all bodies.
    init(byteLimit: Int, limits: Limits = Limits()) {
        self.limits = limits
        leastByteCount = byteLimit / limits.bodyCount
        room = BodyRoom(byteCount: byteLimit, limits: .init(networkCount: 0))
    }

    /// - Returns: false if there is no room for the body.
    mutating func add(_ body: Body, _ size: PendingBodySize) -> Bool {
        guard room.take(bytes(of: size), of: size.network, ()) == .held else { return false }
        turns.append((body, size), cost: size.requestCount, of: size.network)
        return true
    }

    /// The next body to give to the store; nil if none waits, or the store has enough.
    mutating func next() -> (body: Body, size: PendingBodySize)? {
        guard submittedCount < limits.submittedCount, let next = turns.popFirst()?.element else { return nil }
        submittedCount += next.size.requestCount
        return next
    }

    /// A body of ``next()`` is committed, has failed, or was given up.
    mutating func finish(_ size: PendingBodySize) {
        submittedCount -= size.requestCount
        _ = room.release(bytes(of: size), of: size.network)
    }

    private func bytes(of size: PendingBodySize) -> Int { max(size.byteCount, leastByteCount) }
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
        while let due = giveUp(at: .now) { try? await due.sleep() }
    }

    /// - Returns: The due time of the next answer.
    private func giveUp(at now: Instant) -> Instant? {
        let (late, due) = state.withLock { state in
            let late = state.watched.prefix { $0.due <= now }.map(\.answer)
            state.watched.removeFirst(late.count)
            let due = state.next()
            state.isRunning = due != nil
            return (late, due)
        }
        for answer in late { answer.give(nil) }
        return due
    }
}
