import Core
import StatusProtocol
import Synchronization

/// The outcome of each request of an outage run.
final class OutageLog: Sendable {
    typealias Instant = ContinuousClock.Instant

    struct Request {
        let sent: Instant
        /// Whether the device received no requests while gorush was unavailable.
        let hasRested: Bool
        var answered: Instant?
        var isSuccess = false
        var posts: [Instant] = []
    }

    private struct State {
        var requests: [Request] = []
        var byDelivery: [DeliveryID: Int] = [:]
        var postCount = 0
        var failures: [String] = []
    }

    private let state = Mutex(State())

    func fail(_ what: String) { state.withLock { $0.failures.append(what) } }
    var failures: [String] { state.withLock { $0.failures } }
    var requests: [Request] { state.withLock { $0.requests } }
    var postCount: Int { state.withLock { $0.postCount } }

    func sent(_ delivery: DeliveryID, hasRested: Bool) {
        state.withLock { state in
            state.byDelivery[delivery] = state.requests.count
            state.requests.append(Request(sent: .now, hasRested: hasRested))
        }
    }

    func answered(_ delivery: DeliveryID, _ error: PushNotificationReport.ErrorType?) {
        state.withLock { state in
            guard let index = state.byDelivery[delivery] else { return }
            state.requests[index].answered = .now
            state.requests[index].isSuccess = error == nil
            if let error, error != .internalError { state.failures.append("a request was answered \(error)") }
            if error == nil, state.requests[index].posts.isEmpty { state.failures.append("success for what gorush did not get") }
        }
    }

    func posted(_ deliveries: [DeliveryID]) {
        state.withLock { state in
            let now = Instant.now
            state.postCount += deliveries.count
            for delivery in deliveries {
                guard let index = state.byDelivery[delivery] else {
                    state.failures.append("posted, but nobody asked for it")
                    continue
                }
                state.requests[index].posts.append(now)
            }
        }
    }
}

extension [Duration] {
    /// `12 ms, 80 ms`: median and 99th percentile.
    var spread: String {
        let sorted = sorted()
        guard !sorted.isEmpty else { return "–" }
        return "\(sorted[sorted.count / 2].inMilliseconds), \(sorted[Swift.min(sorted.count - 1, sorted.count * 99 / 100)].inMilliseconds)"
    }
}
