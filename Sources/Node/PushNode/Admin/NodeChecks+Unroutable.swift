import NodeAPI

extension NodeChecks {
    /// - Parameter count: the notifications that this node has no endpoint for, or whose protocol it does not serve.
    static func unroutable(_ count: Int) -> Finding? {
        guard count > 0 else { return nil }
        return Finding(
            "outbox", .warn, "\(count) notifications wait until they expire: this node has no endpoint for them",
            remedy: "start the node with what their devices need: --web-push, --status-v0.1, --session-http or a gorush for the app")
    }
}
