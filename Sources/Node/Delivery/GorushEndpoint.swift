import NodeMetrics

/// Takes notifications to a gorush server, and tells what it said.
package protocol NotificationPosting: Sendable {
    func post(_ notifications: [Notification]) async -> PostResult

    /// Asks for its health: why there was no sensible answer; nil if there was one.
    func healthFailure() async -> String?

    /// See `NotificationFormat.showsRepetitionOnce`.
    func showsRepetitionOnce(_ notification: Notification) -> Bool
}

extension NotificationPosting {
    package func healthFailure() async -> String? { nil }

    /// As gorush would without settings of the operator.
    package func showsRepetitionOnce(_ notification: Notification) -> Bool { NotificationFormat().showsRepetitionOnce(notification) }
}

/// A gorush server, and what it is for.
package struct GorushEndpoint: Sendable {
    /// So many a node may have.
    package static let limit = EndpointLabel.allCases.count

    package let rule: EndpointRule
    package let posting: any NotificationPosting
    /// Posts at once.
    package let connections: Int
    /// Notifications in a post at most.
    package let batch: Int
    /// How long a post waits for its answer.
    package let timeout: Duration

    package init(
        _ posting: any NotificationPosting, rule: EndpointRule = EndpointRule(), connections: Int = 8, batch: Int = 100,
        timeout: Duration = GorushClient.standardTimeout
    ) {
        self.rule = rule
        self.connections = connections
        self.batch = batch
        self.timeout = timeout
        self.posting = posting
    }
}

extension GorushClient: NotificationPosting {}
