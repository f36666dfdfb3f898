/// A notification of Session as gorush is posted it.
struct SessionPost: Sendable {
    let token: String
    /// Base64.
    let payload: String
}

/// What is posted of Session.
struct SessionPosts: Sendable {
    /// They were posted, and will be taken. Returns what they are.
    let posted: @Sendable ([SessionPost], _ daemon: Int) -> [SessionLedger.NoticeKey]
    /// The reply is about to leave.
    let replied: @Sendable ([SessionLedger.NoticeKey], _ daemon: Int) -> Void
}
