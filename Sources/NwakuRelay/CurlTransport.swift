public import CurlClient
public import Logging
import Waku

/// A node's REST API over libcurl.
struct CurlTransport: HTTPTransport {
    let client: CurlClient

    func exchange(
        url: String, body: [UInt8]?, timeout: Duration, maximumByteCount: Int
    ) async throws(NwakuAPIError) -> (status: Int, body: [UInt8]) {
        let request = HTTPRequest(
            method: body == nil ? "GET" : "POST", url: url, headers: body == nil ? [] : [("Content-Type", "application/json")], body: body,
            timeout: timeout, maximumResponseByteCount: maximumByteCount)
        do throws(HTTPError) {
            let response = try await client.send(request)
            return (response.status, response.body)
        } catch {
            throw NwakuAPIError(code: error.code == .tooLarge ? .unreadable : .unreachable, message: error.message)
        }
    }
}

extension NwakuRelay {
    /// - Throws: ``NwakuRelayError`` for settings that can't work.
    public convenience init(configuration: Configuration, client: CurlClient, logger: Logger) throws(NwakuRelayError) {
        try self.init(
            configuration: configuration, api: NwakuAPI(address: configuration.address, transport: CurlTransport(client: client)),
            logger: logger,
            backOff: BackOff(), period: .seconds(5))
    }
}

extension NwakuStoreWatch {
    public convenience init(configuration: Configuration, client: CurlClient, logger: Logger) {
        self.init(
            configuration: configuration, contentTopics: [],
            api: NwakuAPI(address: configuration.address, transport: CurlTransport(client: client)), logger: logger)
    }
}
