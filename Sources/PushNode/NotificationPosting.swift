public import Gorush

/// Takes notifications to a gorush server, and tells what it said.
public protocol NotificationPosting: Sendable {
    func post(_ notifications: [Notification]) async -> PostResult
}

extension GorushClient: NotificationPosting {}
