import CurlClient
import TestSupport
import Testing

/// Tests with an HTTP/2 server whose first connection falls silent after a response, as after a silent break of the path, or with a server that hangs.
struct CurlClientHTTP2Tests {
    enum Others: CaseIterable {
        case none
        /// Another request stays on the connection.
        case lasting
        /// Another request times out together with the first one, while the next request is queued.
        case endingTogether
    }

    @Test(arguments: Others.allCases) func aSilentConnectionIsLeftAfterATimeout(others: Others) async throws {
        let service = try await PushServiceStandIn(script: "silent_http2_service.py")
        let url = service.endpoint("/")
        let client = CurlClient(
            configuration: CurlConfiguration(trust: .file(path: service.authority), maximumConnectionsPerHost: 2))
        @Sendable func send(timeout: Duration = .seconds(60)) async throws -> Int {
            try await client.send(HTTPRequest(url: url, connectTimeout: .seconds(60), timeout: timeout)).status
        }
        @Sendable func timesOut() async throws {
            let error = try await #require(throws: HTTPError.self) { try await send(timeout: .seconds(1)) }
            #expect(error.code == .timeout)
        }
        #expect(try await send() == 200)

        var other: Task<Void, any Error>?
        switch others {
        case .none:
            try await timesOut()
            #expect(try await send() == 200)
        case .lasting:
            other = Task { _ = try await send() }
            try await eventually { service.requests.count == 2 }
            try await timesOut()
            #expect(try await send() == 200)
        case .endingTogether:
            async let first: Void = timesOut()
            async let second: Void = timesOut()
            try await eventually { service.requests.count == 3 }
            #expect(try await send() == 200)
            _ = try await (first, second)
        }
        other?.cancel()

        let silentCount = others == .none ? 2 : 3
        try await eventually { service.requests.count > silentCount }
        let connections = service.requests.map(\.connection)
        #expect(connections.dropLast().allSatisfy { $0 == connections[0] } && connections.last != connections[0])
    }
}
