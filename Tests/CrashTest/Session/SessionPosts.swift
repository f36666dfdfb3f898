/// A notification of Session in a post to gorush.
struct SessionPost: Sendable {
    let token: String
    /// Base64.
    let payload: String
}

/// Callbacks for posts of Session notifications.
struct SessionPosts: Sendable {
    /// Called when notifications were posted that will be accepted. Returns their notices.
    let posted: @Sendable ([SessionPost], _ daemon: Int) -> [SessionLedger.NoticeKey]
    /// Called just before the reply is sent.
    let replied: @Sendable ([SessionLedger.NoticeKey], _ daemon: Int) -> Void
}
