package import CurlClient
package import Waku

/// Posts notifications to a gorush server, and tells what became of them.
package final class GorushClient: Sendable {
    /// With `core.sync: true` gorush answers after the last notification of a post, and goes on with it when the caller hangs up.
    package static let standardTimeout = Duration.seconds(60)

    private let client: CurlClient
    private let url: String
    private let profile: PayloadProfile
    private let timeout: Duration
    private let now: @Sendable () -> Timestamp

    /// - Parameters:
    ///   - client: holds the credentials, and whose certificates are trusted.
    ///   - url: http or https, with an optional path before gorush's own. `/api/push` is added.
    ///   - timeout: how long an answer is waited for on the open connection. What is unanswered then may have been delivered or not, and is
    ///     to be posted again.
    ///   - now: what dates in Retry-After are compared with.
    /// - Throws: ``GorushError`` for a URL that can't be posted to.
    package init(
        client: CurlClient, url: String, profile: PayloadProfile = .default, timeout: Duration = GorushClient.standardTimeout,
        now: @escaping @Sendable () -> Timestamp = { .now() }
    ) throws(GorushError) {
        do throws(HTTPBaseURL.Problem) {
            self.url = try HTTPBaseURL(parsing: url).appending(path: "/api/push")
        } catch {
            throw GorushError(error)
        }
        self.client = client
        self.profile = profile
        self.timeout = timeout
        self.now = now
    }

    /// Posts once, and never throws: what went wrong is an outcome.
    ///
    /// - Parameter notifications: at most 100, each with an id of its own. None at all are accepted without a post.
    package func post(_ notifications: [Notification]) async -> PostResult {
        guard !notifications.isEmpty else { return PostResult(outcome: .accepted, postedTokenCount: 0, countedTokenCount: 0) }
        let push = PushRequest(notifications, profile: profile)
        let request = HTTPRequest(
            method: "POST", url: url, headers: [("Content-Type", "application/json")], body: push.encoded(), timeout: timeout)
        do throws(HTTPError) {
            return result(of: try await client.send(request), to: push)
        } catch {
            return PostResult(outcome: .failed(retryAfter: nil), reason: error.message, postedTokenCount: notifications.count)
        }
    }

    /// What a status means. gorush itself sends 200 and 400; the others come from what stands before it, or from where it is not.
    ///
    /// | status | meaning | outcome |
    /// |---|---|---|
    /// | 2xx | it took the batch | accepted |
    /// | 400 | not JSON as it wants it, or over `core.max_notification` | refused |
    /// | 413, 422 | the batch is too long, or its content is not to the liking of a proxy | refused |
    /// | 408, 425, 429 | overloaded, or too early | failed, with Retry-After |
    /// | 5xx | out of order, or a proxy that can't reach it | failed, with Retry-After |
    /// | 401, 407, 511 | other credentials are wanted | failed, by the operator's mistake |
    /// | 3xx, 404, 405, 410 and others | the URL is not that of a gorush | failed, by the operator's mistake |
    /// | 403, 451 | forbidden to this node | failed, by the operator's mistake |
    ///
    /// What is *refused* is halved until the culprit is alone, and that is dropped. What *failed* stays until its age.
    private func result(of response: HTTPResponse, to push: PushRequest) -> PostResult {
        let tokenCount = push.members.reduce(0) { $0 + $1.count }
        var reason = "status \(response.status)"
        var outcome = PostOutcome.failed(retryAfter: nil)
        var isOperatorsMistake = false
        switch response.status {
        case 200..<300:
            return PostResult(acceptedBy: GorushReply(parsing: response.body), status: response.status, push, tokenCount: tokenCount)
        case 400, 413, 422:
            outcome = .refused
        case 401, 403, 407, 451, 511:
            reason += ": this node may not post there: check the options for gorush's credentials"
            isOperatorsMistake = true
        case 408, 425, 429, 500...:
            outcome = .failed(retryAfter: response.header("Retry-After").flatMap { RetryAfter.parse($0, now: now()) })
        default:
            reason += ": there is no gorush at this URL: check --gorush"
            isOperatorsMistake = true
        }
        return PostResult(
            outcome: outcome, status: response.status, reason: reason, isOperatorsMistake: isOperatorsMistake, postedTokenCount: tokenCount)
    }
}

extension GorushError {
    init(_ problem: HTTPBaseURL.Problem) {
        switch problem {
        case .notHTTP:
            self.init(.notHTTP, "the URL of gorush does not begin with http:// or https://: give one such as http://127.0.0.1:8088")
        case .noHost:
            self.init(.noHost, "the URL of gorush has no host: give one such as http://127.0.0.1:8088")
        case .userinfo:
            self.init(.credentialsInURL, "the URL of gorush has credentials in it: give them by the options for gorush's credentials")
        case .query:
            self.init(.queryInURL, "the URL of gorush has a query or a fragment: leave out what comes after the path")
        case .malformed:
            self.init(.malformedURL, "the URL of gorush can't be read: give one such as http://127.0.0.1:8088")
        }
    }
}
