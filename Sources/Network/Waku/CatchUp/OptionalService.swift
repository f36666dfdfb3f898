package import Core

/// Decides whether to call a service that not every node has, such as lightpush or the store.
///
///     available ──(node lacks it)──▶ paused ──(retry period passed, or node reconnected)──▶ available
package struct OptionalService {
    private var pausedUntil: Instant?
    /// How long the service counts as missing before the node is asked again.
    package static let retryPeriod = Duration.seconds(60)

    package init() {}

    package func isAvailable(at now: Moment) -> Bool {
        pausedUntil.map { now.instant >= $0 } ?? true
    }

    package mutating func noteMissing(at now: Moment) {
        pausedUntil = now.instant + Self.retryPeriod
    }

    /// The node reconnected, possibly with another configuration.
    package mutating func noteReconnection() {
        pausedUntil = nil
    }
}
