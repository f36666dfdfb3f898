package import CurlClient
package import Core
import NodeMetrics
import Waku

/// Posts notifications to a gorush server and returns the outcome.
package struct GorushClient: Sendable {
    /// Long, because with `core.sync: true` gorush answers only after the last notification of a post, and continues if the client disconnects.
    package static let standardTimeout = Duration.seconds(60)

    private let client: CurlClient
    private let url: String
    private let healthURL: String
    private var format: NotificationFormat
    private let timeout: Duration
    private let now: @Sendable () -> Timestamp

    /// - Parameters:
    ///   - client: an HTTP client with the credentials and trusted certificates.
    ///   - url: http or https, with an optional path before gorush's own. `/api/push` is added.
    ///   - profile: the format of notifications that the app expects.
    ///   - ids: see ``NotificationFormat/init(_:settings:ids:)``.
    ///   - timeout: the time limit for the response. After a timeout, notifications may or may not have been delivered, and must be posted again.
    ///   - now: the clock, for dates in Retry-After and for the time to live of notifications.
    /// - Throws: ``GorushError`` for a URL that can't be posted to.
    package init(
        client: CurlClient, url: String, profile: PayloadProfile = .default, settings: NotificationSettings = .none,
        ids: NotificationIDCipher? = nil, timeout: Duration = GorushClient.standardTimeout,
        now: @escaping @Sendable () -> Timestamp = { .now() }
    ) throws(GorushError) {
        do throws(HTTPBaseURL.Problem) {
            let base = try HTTPBaseURL(parsing: url)
            self.url = base.appending(path: "/api/push")
            healthURL = base.appending(path: "/healthz")
        } catch {
            throw GorushError(error)
        }
        self.client = client
        format = NotificationFormat(profile, settings: settings, ids: ids)
        self.timeout = timeout
        self.now = now
    }

    /// The same server and connections, with another format.
    package func posting(_ format: NotificationFormat) -> GorushClient {
        var copy = self
        copy.format = format
        return copy
    }

    /// Posts once. Does not throw; failures are outcomes.
    ///
    /// - Parameter notifications: at most 100, with distinct ids. An empty list is accepted without a post.
    package func post(_ notifications: [Notification]) async -> PostResult {
        guard !notifications.isEmpty else { return PostResult(outcome: .accepted, postedTokenCount: 0, countedTokenCount: 0) }
        let push = PushRequest(notifications, format: format)
        var request = HTTPRequest(
            method: "POST", url: url, headers: headers, body: push.encoded(at: now()), timeout: timeout, cutsLongResponses: true)
        request.isRepeatable = false
        do throws(HTTPError) {
            return result(of: try await client.send(request), to: push)
        } catch {
            let outcome: PostOutcome = error.code == .interrupted ? .unclear(retryAfter: nil) : .failed(retryAfter: nil)
            return PostResult(outcome: outcome, reason: error.message, postedTokenCount: notifications.count)
        }
    }

    private var headers: [(name: String, value: String)] {
        var headers = [(name: "Content-Type", value: "application/json")]
        if let trace = TraceContext.current { headers.append((TraceContext.header, trace.traceparent)) }
        return headers
    }

    private static let webPage = "a web page, which gorush does not send: check --gorush and the proxy before it"
    private static let healthTimeout = Duration.seconds(2)

    /// Checks gorush's health. The path is configurable in gorush, so any status below 500 counts as healthy.
    ///
    /// - Returns: the reason for the failure; nil when healthy.
    package func healthFailure() async -> String? {
        do throws(HTTPError) {
            let status = try await client.send(HTTPRequest(url: healthURL, timeout: Self.healthTimeout)).status
            return status < 500 || status == 501 ? nil : "status \(status)"
        } catch {
            return error.message
        }
    }

    package var certificateEnd: Int? { client.certificateEnd }

    /// See ``NotificationFormat/showsRepetitionOnce(_:)``.
    package func showsRepetitionOnce(_ notification: Notification) -> Bool { format.showsRepetitionOnce(notification) }

    /// The meaning of a status. gorush itself sends 200 and 400; others come from a proxy or another server.
    ///
    /// | status | meaning | outcome |
    /// |---|---|---|
    /// | 2xx | the batch was accepted | accepted |
    /// | 2xx with a web page | a login page, a proxy's maintenance, or another server | failed, misconfigured |
    /// | 400 with a web page | HTTP at a port for HTTPS, or a proxy refuses a content | server error |
    /// | 400 | invalid JSON, or over `core.max_notification` | refused |
    /// | 413, 422 | the batch is too long, or a proxy rejects its content | refused |
    /// | 408, 425, 429 | overloaded, or too early | failed, with Retry-After |
    /// | 5xx with Retry-After | overloaded | failed, with Retry-After |
    /// | 5xx | failing, or unreachable for a proxy; or a notification makes it fail | server error |
    /// | 401, 407, 511 | wrong credentials | failed, misconfigured |
    /// | 3xx, 404, 405, 410 and others | not the URL of a gorush | failed, misconfigured |
    /// | 403, 451 | forbidden for this node | failed, misconfigured |
    ///
    /// A *refused* batch is split in halves until the refused notification is alone, which is dropped. *Failed* notifications are retried until
    /// they expire, those of a *server error* each alone.
    ///
    /// The status counts although the body breaks off, does not end or is too long: posting an accepted batch again would notify its devices again.
    /// Token failures in the lost part are reported again with the next notification.
    private func result(of response: HTTPResponse, to push: PushRequest) -> PostResult {
        let tokenCount = push.members.reduce(0) { $0 + $1.count }
        var reason = "status \(response.status)"
        var outcome = PostOutcome.failed(retryAfter: nil)
        var isOperatorsMistake = false
        switch response.status {
        case 200..<300 where GorushReply.isWebPage(response.body):
            reason += ": \(Self.webPage)"
            isOperatorsMistake = true
        case 400 where GorushReply.isWebPage(response.body):
            reason += ": \(Self.webPage)"
            outcome = .unclear(retryAfter: nil)
        case 200..<300:
            return PostResult(acceptedBy: GorushReply(parsing: response.body), status: response.status, push, tokenCount: tokenCount)
        case 400, 413, 422:
            outcome = .refused
        case 401, 403, 407, 451, 511:
            reason += ": this node may not post there: check the options for gorush's credentials"
            isOperatorsMistake = true
        case 408, 425, 429, 500...:
            let retryAfter = response.header("Retry-After").flatMap { RetryAfter.parse($0, now: now()) }
            outcome = response.status < 500 || retryAfter != nil ? .failed(retryAfter: retryAfter) : .unclear(retryAfter: nil)
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
            self.init(.credentialsInURL, "the URL of gorush has credentials in it: use the options for gorush's credentials")
        case .query:
            self.init(.queryInURL, "the URL of gorush has a query or a fragment: remove everything after the path")
        case .malformed:
            self.init(.malformedURL, "the URL of gorush can't be read: give one such as http://127.0.0.1:8088")
        }
    }
}
