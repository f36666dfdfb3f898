import Logging
import NodeMetrics
import PushNode
import PushTypes
import SessionProtocol
import SessionRules
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
    private let timeout: Duration
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
        self.timeout = timeout
        subscriptions = Subscriptions(node.store.sealer)
    }

    /// Returns once the requests are durable, have failed, or the store did not answer in time.
    ///
    /// - Parameters:
    ///   - requests: of one body, verified.
    ///   - byteCount: of the body.
    func commit(_ requests: [SessionRequest], byteCount: Int) async -> [RequestAnswer] {
        func all(_ error: RequestError) -> [RequestAnswer] { requests.map { _ in .failed(error) } }
        guard !requests.isEmpty else { return [] }
        if node.drain.isOn { return all(.draining) }
        guard pending.withLock({ $0.add(byteCount: byteCount) }) else { return all(.storeTimeout) }
        let answer = FirstAnswer()
        let timer = Task { [timeout] in
            try await Task.sleep(for: timeout)
            answer.give(nil)
        }
        submit(requests, byteCount, answer)
        let result = await answer.value
        timer.cancel()
        guard let result else { return all(.storeTimeout) }
        return (try? result.get()) ?? all(.storeFailed)
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
                node.logger.error("subscriptions not stored", metadata: ["reason": "\(error.message)"])
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

    private enum State {
        case open
        case waiting(CheckedContinuation<Value, Never>)
        case given(Value)
        case taken
    }

    private let state = Mutex(State.open)

    /// - Parameter value: nil: there was no answer in time.
    func give(_ value: Value) {
        let waiting = state.withLock { state -> CheckedContinuation<Value, Never>? in
            switch state {
            case .open: state = .given(value)
            case .waiting(let continuation):
                state = .taken
                return continuation
            case .given, .taken: break
            }
            return nil
        }
        waiting?.resume(returning: value)
    }

    /// To be read once.
    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let given = state.withLock { state -> Value? in
                    if case .given(let value) = state {
                        state = .taken
                        return .some(value)
                    }
                    state = .waiting(continuation)
                    return nil
                }
                if let given { continuation.resume(returning: given) }
            }
        }
    }
}
