/// Whether to try a call that not every node serves: lightpush, the store.
///
///     tried ──(not served)──▶ left ──(time passed, or the node is back)──▶ tried
struct OptionalService {
    private var missingUntil: Duration?
    /// After which a node that did not serve it is asked again.
    static let pause = Duration.seconds(60)

    func isTried(at now: Moment) -> Bool {
        missingUntil.map { now.uptime >= $0 } ?? true
    }

    mutating func isMissing(at now: Moment) {
        missingUntil = now.uptime + Self.pause
    }

    /// Perhaps with another configuration.
    mutating func nodeIsBack() {
        missingUntil = nil
    }
}
