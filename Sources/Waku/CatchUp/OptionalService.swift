import Primitives

/// Whether to try a call that not every node serves: lightpush, the store.
///
///     tried ──(not served)──▶ left ──(time passed, or the node is back)──▶ tried
package struct OptionalService {
    private var missingUntil: Instant?
    /// After which a node that did not serve it is asked again.
    package static let pause = Duration.seconds(60)

    package init() {}

    package func isTried(at now: Moment) -> Bool {
        missingUntil.map { now.instant >= $0 } ?? true
    }

    package mutating func isMissing(at now: Moment) {
        missingUntil = now.instant + Self.pause
    }

    /// Perhaps with another configuration.
    package mutating func nodeIsBack() {
        missingUntil = nil
    }
}
