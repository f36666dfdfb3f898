/// The outcome of a post.
package enum PostOutcome: Sendable, Hashable {
    case accepted
    /// gorush understood and rejected it: the cause is in the batch.
    case refused
    /// gorush is failing, unreachable or misconfigured (URL or credentials): the cause is not in the batch.
    /// - Parameter retryAfter: the delay that gorush requests.
    case failed(retryAfter: Duration?)
    /// gorush or a push service answered with an error, gorush broke the connection, or a push service did not answer: the cause is either there or
    /// in one of the notifications.
    /// - Parameter retryAfter: the delay after which they may be posted again.
    case unclear(retryAfter: Duration?)
    /// Nothing was posted, so the outcome is no evidence about gorush.
    case notPosted
    /// Nothing was posted, and nothing will be: the endpoint takes no such notifications. No evidence about it either.
    case unpostable
}
