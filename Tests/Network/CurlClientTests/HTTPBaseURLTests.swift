import CurlClient
import Testing

struct HTTPBaseURLTests {
    @Test(arguments: [
        ("http://127.0.0.1:8088", "http://127.0.0.1:8088/api/push"), ("http://127.0.0.1:8088/", "http://127.0.0.1:8088/api/push"),
        ("https://push.example/gorush", "https://push.example/gorush/api/push"),
        ("https://push.example/gorush///", "https://push.example/gorush/api/push"), ("HTTP://h:80", "http://h:80/api/push"),
        ("http://[::1]:8088/", "http://[::1]:8088/api/push"),
    ])
    func pathsAreAppended(url: String, expected: String) throws {
        #expect(try HTTPBaseURL(parsing: url).appending(path: "/api/push") == expected)
    }

    @Test(arguments: [
        ("", HTTPBaseURL.Problem.notHTTP), ("gorush:8088", .notHTTP), ("ftp://h", .notHTTP), ("/api", .notHTTP), ("http:/h", .notHTTP),
        ("http://", .noHost), ("http:///api", .noHost), ("http://:8088", .noHost), ("http://user:word@h", .userinfo),
        ("https://user@h/", .userinfo), ("http://@h/", .userinfo), ("http://h/?a=b", .query), ("http://h/?", .query),
        ("http://h/#a", .query), ("http://h:x", .malformed),
        ("http://h h/", .malformed), ("http://h\0h/", .malformed),
    ])
    func othersAreRefused(url: String, problem: HTTPBaseURL.Problem) {
        #expect(throws: problem) { try HTTPBaseURL(parsing: url) }
    }
}
