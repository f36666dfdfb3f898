import CurlClient

/// A request with timeouts that do not fail on slow machines.
func longTimeoutRequest(
    method: String = "GET", url: String, headers: [(name: String, value: String)] = [], body: [UInt8]? = nil,
    maximumResponseByteCount: Int = HTTPRequest.defaultMaximumResponseByteCount
) -> HTTPRequest {
    HTTPRequest(
        method: method, url: url, headers: headers, body: body, connectTimeout: .seconds(60), timeout: .seconds(60),
        maximumResponseByteCount: maximumResponseByteCount)
}
