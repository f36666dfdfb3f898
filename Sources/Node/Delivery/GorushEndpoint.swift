import NodeMetrics

/// Posts notifications to a gorush server and returns its reply.
package protocol NotificationPosting: Sendable {
    func post(_ notifications: [Notification]) async -> PostResult

    /// Checks the server's health. Returns the reason for a failure; nil when it is healthy.
    func healthFailure() async -> String?

    /// When the server's certificate expires, in seconds since 1970; nil without TLS, and before the first response.
    var certificateEnd: Int? { get }

    /// See `NotificationFormat.showsRepetitionOnce`.
    func showsRepetitionOnce(_ notification: Notification) -> Bool
}

extension NotificationPosting {
    package func healthFailure() async -> String? { nil }

    /// Uses the format without operator settings.
    package func showsRepetitionOnce(_ notification: Notification) -> Bool { NotificationFormat().showsRepetitionOnce(notification) }
}

/// A gorush server, with its routing rule and limits.
package struct GorushEndpoint: Sendable {
    /// The maximum number of endpoints of a node.
    package static let limit = EndpointLabel.allCases.count

    package let rule: EndpointRule
    package let posting: any NotificationPosting
    /// The maximum number of concurrent posts.
    package let connections: Int
    /// The maximum number of notifications in a post.
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

extension GorushEndpoint {
    /// In place of a gorush for nodes without one: gets nothing, because its rule accepts no platform.
    package static let none = GorushEndpoint(NoGorush(), rule: EndpointRule(name: "none", platforms: []))

    private struct NoGorush: NotificationPosting {
        var certificateEnd: Int? { nil }
        func post(_ notifications: [Notification]) async -> PostResult {
            PostResult(outcome: .notPosted, postedTokenCount: notifications.count)
        }
    }
}

extension EndpointRule {
    /// Whether it accepts no device at all: see ``GorushEndpoint/none``.
    package var acceptsNothing: Bool { platforms?.isEmpty == true }
}

extension GorushClient: NotificationPosting {}
