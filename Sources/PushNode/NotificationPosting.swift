public import Gorush
import NodeMetrics

/// Takes notifications to a gorush server, and tells what it said.
public protocol NotificationPosting: Sendable {
    func post(_ notifications: [Notification]) async -> PostResult
}

/// A gorush server, and what it is for.
public struct GorushEndpoint: Sendable {
    /// So many a node may have.
    public static let limit = EndpointLabel.allCases.count

    public let rule: EndpointRule
    public let posting: any NotificationPosting
    /// Posts at once.
    public let connections: Int
    /// Notifications in a post at most.
    public let batch: Int
    /// How long a post waits for its answer.
    public let timeout: Duration

    public init(
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
