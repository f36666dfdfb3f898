import CurlClient
import Delivery
import Core
import StatusProtocol
import TestSupport
import Testing

/// Against a server on 127.0.0.1.
struct GorushClientTests {
    private func post(
        _ notifications: [Delivery.Notification], _ reply: RawHTTPServer.Reply, profile: PayloadProfile = .default,
        timeout: Duration = .seconds(60)
    ) async throws -> PostResult {
        let server = try RawHTTPServer { _ in reply }
        defer { server.stop() }
        let epoch: @Sendable () -> Timestamp = { Timestamp(rawValue: 0) }
        let client = try GorushClient(client: CurlClient(), url: server.url, profile: profile, timeout: timeout, now: epoch)
        return await client.post(notifications)
    }

    @Test func anyAnswerOfAServerThatWorksIsHealth() async throws {
        for (status, isHealthy) in [(200, true), (404, true), (401, true), (501, true), (500, false), (502, false), (503, false)] {
            let server = try RawHTTPServer { _ in .status(status) }
            let client = try GorushClient(client: CurlClient(), url: server.url + "/prefix")
            #expect(await (client.healthFailure() == nil) == isHealthy, "\(status)")
            #expect(server.requests.map { $0.head.prefix { $0 != "\r\n" } } == ["GET /prefix/healthz HTTP/1.1"])
            server.stop()
            #expect(await client.healthFailure() != nil)
        }
    }

    @Test func whatIsPosted() async throws {
        let server = try RawHTTPServer { _ in .status(200, body: #"{"success":"ok","counts":1,"logs":[]}"#) }
        defer { server.stop() }
        let notifications = [try Sample.notification()]
        for path in ["", "/", "//", "/prefix", "/prefix/"] {
            let result = await (try GorushClient(client: CurlClient(), url: server.url + path, timeout: .seconds(60))).post(notifications)
            #expect(result.outcome == .accepted)
            #expect(result.countedTokenCount == 1)
            #expect(result.ignoredTokenCount == 0)
        }
        let lines = server.requests.map { $0.head.prefix { $0 != "\r\n" } }
        #expect(
            lines == Array(repeating: "POST /api/push HTTP/1.1", count: 3) + Array(repeating: "POST /prefix/api/push HTTP/1.1", count: 2))
        #expect(server.requests.allSatisfy { $0.header("Content-Type") == "application/json" })
        let expected = try Sample.notifications(in: PayloadProfile.combined.encode(notifications))
        for request in server.requests { #expect(try Sample.notifications(in: request.body) == expected) }
    }

    @Test(arguments: [
        (200, PostOutcome.accepted), (201, .accepted), (204, .accepted), (400, .refused), (413, .refused), (422, .refused),
        (408, .failed(retryAfter: nil)), (425, .failed(retryAfter: nil)), (429, .failed(retryAfter: nil)),
        (500, .unclear(retryAfter: nil)), (503, .unclear(retryAfter: nil)), (599, .unclear(retryAfter: nil)),
    ])
    func statuses(status: Int, outcome: PostOutcome) async throws {
        let reply = status == 204 ? RawHTTPServer.Reply.bytes(Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)) : .status(status)
        let result = try await post([Sample.notification()], reply)
        #expect(result.outcome == outcome)
        #expect(result.reason == (outcome == .accepted ? nil : "status \(status)"))
        #expect(!result.isOperatorsMistake)
    }

    /// HTTP at a port for HTTPS, or a proxy that refuses a content.
    @Test func aWebPageIsNoRefusal() async throws {
        let result = try await post([Sample.notification()], .status(400, body: "\n <!DOCTYPE html><html>Bad request</html>"))
        #expect(result.outcome == .unclear(retryAfter: nil))
        #expect(result.reason?.hasPrefix("status 400: a web page") == true)
        #expect(!result.isOperatorsMistake)
    }

    @Test("A post whose connection ends before the reply is not sent again at once")
    func reusedConnectionEnds() async throws {
        let server = try RawHTTPServer { $0.connection == 0 && $0.body.isEmpty ? .status(200) : .last([]) }
        defer { server.stop() }
        let http = CurlClient()
        #expect(try await http.send(HTTPRequest(url: server.url, timeout: .seconds(60))).status == 200)
        let result = await (try GorushClient(client: http, url: server.url, timeout: .seconds(60))).post([try Sample.notification()])
        #expect(result.outcome == .unclear(retryAfter: nil))
        #expect(server.requests.count == 2 && server.requests.last?.connection == 0)
    }

    /// The posted notifications are not the cause.
    @Test(arguments: [301, 302, 401, 403, 404, 405, 407, 410, 415, 421, 426, 451, 511])
    func operatorsMistakes(status: Int) async throws {
        let result = try await post([Sample.notification()], .status(status))
        #expect(result.outcome == .failed(retryAfter: nil))
        #expect(result.isOperatorsMistake)
        #expect(result.reason?.hasPrefix("status \(status): ") == true)
    }

    @Test func notificationsThatGorushHasNoRoomForAreNotAccepted() async throws {
        let logs = """
            {"counts": 2, "logs": [{"notif_id": "b", "type": "failed-push", "platform": "ios", "token": "*", "error": "max capacity reached"}]}
            """
        let result = try await post([Sample.notification("a"), Sample.notification("b")], .status(200, body: logs))
        #expect(result.outcome == .accepted)
        #expect(result.notAccepted == ["b"])
        let single = try await post([Sample.notification("b")], .status(200, body: logs))
        #expect(single.outcome == .accepted && single.notAccepted == ["b"])
        let both = """
            {"counts": 2, "logs": [{"notif_id": "a", "type": "failed-push", "platform": "ios", "token": "*", "error": "max capacity reached"},
            {"notif_id": "b", "type": "failed-push", "platform": "ios", "token": "*", "error": "max capacity reached"}]}
            """
        let full = try await post([Sample.notification("a"), Sample.notification("b")], .status(200, body: both))
        #expect(full.outcome == .failed(retryAfter: nil) && full.reason == "gorush's queue is full" && full.failures.isEmpty)
    }

    @Test(arguments: [("17", 17), ("Thu, 01 Jan 1970 00:01:00 GMT", 60)])
    func retryAfterIsPassedOn(header: String, seconds: Int) async throws {
        let result = try await post([Sample.notification()], .status(429, headers: ["Retry-After: \(header)"]))
        #expect(result.outcome == .failed(retryAfter: .seconds(seconds)))
    }

    /// A notification may have broken the connection, but not delayed the answer or made it another server's.
    @Test(arguments: [
        (RawHTTPServer.Reply.hang, PostOutcome.failed(retryAfter: nil)), (.reset([]), .unclear(retryAfter: nil)),
        (.last(Array("gorush?\r\n".utf8)), .failed(retryAfter: nil)),
    ])
    func withoutAResponse(reply: RawHTTPServer.Reply, outcome: PostOutcome) async throws {
        let result = try await post([Sample.notification()], reply, timeout: .milliseconds(100))
        #expect(result.outcome == outcome)
        #expect(result.reason != nil)
    }

    @Test func nobodyIsAcceptedWithoutAPost() async throws {
        #expect(try await post([], .status(500)).outcome == .accepted)
    }

    @Test func aPlatformThatIsSwitchedOff() async throws {
        let notifications = [try Sample.notification("a"), try Sample.notification("b", platform: .firebase)]
        let result = try await post(notifications, .status(200, body: #"{"counts": 1}"#))
        #expect(result.postedTokenCount == 2)
        #expect(result.countedTokenCount == 1)
        #expect(result.ignoredTokenCount == 1)
    }

    /// Four tokens, of which two are of notifications with a topic and one of a notification without.
    @Test(
        "Newer versions of gorush count each topic, too: that does not hide the tokens of a disabled platform",
        arguments: [(4, 0), (6, 0), (5, 1), (3, 1), (1, 3)])
    func topicsThatAreCounted(counts: Int, ignored: Int) async throws {
        let notifications = [
            try Sample.notification("a"), try Sample.notification("b"), try Sample.notification("c", topic: ""),
            try Sample.notification("d", platform: .firebase),
        ]
        let result = try await post(notifications, .status(200, body: #"{"counts": \#(counts)}"#))
        #expect(result.ignoredTokenCount == ignored)
    }

    @Test func aReplyThatSaysNothingIsAccepted() async throws {
        let result = try await post([Sample.notification()], .status(200, body: "fine"))
        #expect(result.outcome == .accepted)
        #expect(result.ignoredTokenCount == 0)
    }

    /// A login page, or a server that answers any request: nothing is lost while the operator corrects the URL.
    @Test(arguments: ["<!DOCTYPE html><title>Sign in</title>", "\r\n <html>"]) func aWebPageIsNoAcceptance(body: String) async throws {
        let result = try await post([Sample.notification()], .status(200, body: body))
        #expect(result.outcome == .failed(retryAfter: nil))
        #expect(result.reason == "status 200: a web page, which gorush does not send: check --gorush and the proxy before it")
        #expect(result.isOperatorsMistake)
    }

    @Test(
        "The status counts although the reply breaks off, does not end or is too long",
        arguments: [("200 OK", PostOutcome.accepted), ("400 Bad Request", .refused), ("503 Unavailable", .unclear(retryAfter: nil))])
    func repliesThatAreCut(status: String, outcome: PostOutcome) async throws {
        let reply = #"{"counts": 1, "logs": [{"notif_id": "a", "platform": "ios", "token": "*", "error": "Unregistered"}"#
        let head = Array("HTTP/1.1 \(status)\r\nContent-Length: 99999999\r\n\r\n\(reply)".utf8)
        let chunks = Array("HTTP/1.1 \(status)\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nno chunk\r\n".utf8)
        let tooLong = head + Array(repeating: UInt8(ascii: " "), count: 2 << 20)
        let replies: [RawHTTPServer.Reply] = [.last(head), .reset(head), .bytes(head), .last(tooLong), .last(chunks)]
        for reply in replies {
            let result = try await post([Sample.notification("a")], reply, timeout: .seconds(1))
            #expect(result.outcome == outcome)
            #expect(result.failures.isEmpty && result.ignoredTokenCount == 0)
        }
    }

    @Test func failuresAreMatchedByID() async throws {
        let notifications = [
            try Sample.notification("a"), try Sample.notification("b", platform: .firebase), try Sample.notification("c"),
        ]
        let logs = """
            {"counts": 3, "logs": [{"notif_id": "b", "platform": "android", "token": "*", "error": "NotRegistered"},
             {"notif_id": "a", "platform": "ios", "token": "*", "error": "BadDeviceToken"},
             {"notif_id": "z", "platform": "ios", "token": "*", "error": "Unregistered"}]}
            """
        let result = try await post(notifications, .status(200, body: logs))
        #expect(result.failures.map(\.notificationID) == ["b", "a"])
        #expect(result.failures.map(\.verdict) == [.dead, .doubtful])
        #expect(result.unmatchedFailureCount == 1)
    }

    /// Ten characters at each end are masked; a group of the `rfc` profile has one id.
    /// A gorush that retries logs each attempt: the last one counts.
    @Test func aTokenThatIsLoggedOftenFailsOnce() async throws {
        func log(_ id: String, _ error: String) -> String {
            #"{"notif_id": "\#(id)", "platform": "ios", "token": "*", "error": "\#(error)"}"#
        }
        let logs =
            Array(repeating: log("a", "TooManyRequests"), count: 20) + [
                log("b", "BadDeviceToken"), log("a", "Unregistered"), log("z", "x"),
            ]
        let result = try await post(
            [Sample.notification("a"), Sample.notification("b")],
            .status(200, body: #"{"counts": 2, "logs": [\#(logs.joined(separator: ","))]}"#))
        #expect(result.failures.map(\.notificationID) == ["b", "a"])
        #expect(result.failures.map(\.reason) == [.badDeviceToken, .unregistered])
        #expect(result.unmatchedFailureCount == 1)
    }

    @Test func failuresOfAGroupAreMatchedByMaskedToken() async throws {
        let notifications = [
            try Sample.notification("a", token: "0123456789-one-0123456789"),
            try Sample.notification("b", token: "0123456789-two-0123456789"),
        ]
        let logs = """
            {"logs": [{"notif_id": "a", "platform": "ios", "token": "**********-two-**********", "error": "Unregistered"},
             {"notif_id": "a", "platform": "ios", "token": "*************************", "error": "Unregistered"}]}
            """
        let result = try await post(notifications, .status(200, body: logs), profile: .rfc)
        #expect(result.failures.map(\.notificationID) == ["b"])
        #expect(result.unmatchedFailureCount == 1)
        #expect(result.sharedIDs == ["b": "a"])
    }

    @Test(arguments: [
        ("", GorushError.Code.notHTTP), ("gorush:8088", .notHTTP), ("ftp://gorush", .notHTTP), ("http://", .noHost),
        ("http://user:word@gorush", .credentialsInURL), ("http://gorush/?a", .queryInURL), ("http://go rush", .malformedURL),
    ])
    func badURLs(url: String, code: GorushError.Code) throws {
        let error = try #require(throws: GorushError.self) { try GorushClient(client: CurlClient(), url: url) }
        #expect(error.code == code)
        #expect(!error.message.contains("word"))
    }
}
