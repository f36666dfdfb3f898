/// What became of a post.
package enum PostOutcome: Sendable, Hashable {
    case accepted
    /// gorush understood, and does not want it: the fault is in the batch.
    case refused
    /// gorush is out of order, not to be reached, or not at this URL with these credentials: the fault is not in the batch.
    /// - Parameter retryAfter: how long gorush asks to wait.
    case failed(retryAfter: Duration?)
    /// Nothing was left to post: this says nothing about gorush.
    case notPosted
}
