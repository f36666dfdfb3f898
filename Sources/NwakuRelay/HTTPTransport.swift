/// The one thing that is needed of an HTTP client.
protocol HTTPTransport: Sendable {
    /// - Parameter body: A JSON text to POST; nil to GET.
    /// - Throws: ``NwakuAPIError`` with `unreachable` when there is no answer, `unreadable` when it is longer than the limit.
    func exchange(
        url: String, body: [UInt8]?, timeout: Duration, maximumByteCount: Int
    ) async throws(NwakuAPIError) -> (status: Int, body: [UInt8])
}
