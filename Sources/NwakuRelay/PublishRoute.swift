/// By which of a node's two calls to publish.
///
///     lightpush ──(not mounted)──▶ relay only ──(time passed, or the node is back)──▶ lightpush
///
/// Lightpush tells whether the message reached a peer, relay doesn't: so it comes first where the node serves it.
struct PublishRoute {
    private var missingUntil: Duration?
    /// After which a node that did not serve lightpush is asked again.
    static let pause = Duration.seconds(60)

    func triesLightpush(at now: Moment) -> Bool {
        missingUntil.map { now.uptime >= $0 } ?? true
    }

    mutating func lightpushIsMissing(at now: Moment) {
        missingUntil = now.uptime + Self.pause
    }

    /// Perhaps with another configuration.
    mutating func nodeIsBack() {
        missingUntil = nil
    }
}
