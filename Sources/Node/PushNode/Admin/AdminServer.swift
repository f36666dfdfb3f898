import NodeAPI
import Foundation
import HTTPService
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import Storage

/// The operations that the admin socket offers on a running node.
protocol AdminOperations: Sendable {
    var peers: AdminAPI.Peers { get }
    /// The work that limits refuse.
    var limits: AdminAPI.Limits { get }
    /// Why the node is not ready; empty if it is.
    var obstacles: [String] { get }

    func status() async -> NodeStatus
    func setDrain(_ isOn: Bool) async
    /// Returns the previous level; nil if the log level can't be changed.
    func setLogLevel(_ level: Logger.Level) -> Logger.Level?
    /// Retries these notifications of the outbox at once (nil: all), and returns their number.
    func retry(_ ids: [Int64]?) -> Int
    /// Drops these notifications of the outbox (nil: all), and returns their number.
    func dropWaiting(_ ids: [Int64]?) async -> Int
    /// Loads registrations that another process stored, and returns the number of query topics.
    func registrationsChanged() async throws(StoreError) -> Int
    /// Sends a message to the node itself.
    func selfTest() async -> AdminAPI.SelfTest
    /// The configuration, without secrets.
    func setup() -> AdminAPI.Setup
    /// Posts a test notification to the gorush server for its app, with the node's own settings and credentials.
    func testPush(_ push: AdminAPI.TestPush) async -> AdminAPI.TestedPush
    /// Inspects each gorush server.
    func inspectGorush() async -> [AdminAPI.InspectedGorush]
}

/// Serves `AdminAPI` over a Unix socket in the node's data folder, which only the folder's owner can open.
struct AdminServer {
    private static let bodyLimit = 1 << 20

    let node: any AdminOperations
    let socket: AdminSocket
    let logger: Logger

    /// Serves until the task is cancelled.
    func run() async throws {
        // The folder is locked, so an existing socket was left by an earlier process.
        unlink(socket.path)
        defer { unlink(socket.path) }
        // Browsers can't connect to a Unix socket, so any host name is allowed.
        let listener = HTTPListener(
            .unixDomainSocket(path: socket.path), limits: HTTPLimits(.admin), hosts: nil, logger: logger)
        try await listener.run(routes.responder) { [socket] _ in chmod(socket.path, 0o600) }
    }

    private var routes: Routes {
        let node = node
        var routes = Routes()
        routes.get("status") { _, _ in try Self.answer(await node.status()) }
        routes.get("health") { _, _ in try Self.answer(AdminAPI.Health(obstacles: node.obstacles)) }
        routes.get("peers") { _, _ in try Self.answer(node.peers) }
        routes.get("limits") { _, _ in try Self.answer(node.limits) }
        routes.post("drain") { request, _ in
            try await Self.answer(request) { (body: AdminAPI.Drain) in
                await node.setDrain(body.isOn)
                return body
            }
        }
        routes.post("log-level") { request, _ in
            try await Self.answer(request) { (body: AdminAPI.LogLevel) in
                guard let level = Logger.Level(rawValue: body.level) else { throw Refusal(.badRequest, "unknown log level") }
                guard let before = node.setLogLevel(level) else { throw Refusal(.conflict, "the log level of this node can't be changed") }
                return AdminAPI.LogLevel(level: before.rawValue)
            }
        }
        routes.post("outbox/retry") { request, _ in
            try await Self.answer(request) { (selection: AdminAPI.Selection) in AdminAPI.Count(count: node.retry(selection.ids)) }
        }
        routes.post("outbox/drop") { request, _ in
            try await Self.answer(request) { (selection: AdminAPI.Selection) in AdminAPI.Count(count: await node.dropWaiting(selection.ids))
            }
        }
        routes.post("registrations/changed") { _, _ in
            do {
                return try Self.answer(AdminAPI.Count(count: try await node.registrationsChanged()))
            } catch {
                return try Self.answer(AdminAPI.Problem(problem: "\(error)"), .serviceUnavailable)
            }
        }
        routes.post("self-test") { _, _ in try Self.answer(await node.selfTest()) }
        routes.get("setup") { _, _ in try Self.answer(node.setup()) }
        routes.post("gorush/test-push") { request, _ in
            try await Self.answer(request) { (push: AdminAPI.TestPush) in await node.testPush(push) }
        }
        routes.post("gorush/inspect") { _, _ in try Self.answer(await node.inspectGorush()) }
        return routes
    }

    private struct Refusal: Error {
        let status: HTTPResponse.Status
        let problem: String

        init(_ status: HTTPResponse.Status, _ problem: String) {
            self.status = status
            self.problem = problem
        }
    }

    private static func answer<Body: Decodable, Outcome: Encodable>(
        _ request: Request, _ carryOut: (Body) async throws -> Outcome
    ) async throws -> Response {
        do {
            let bytes = try await request.body.collect(upTo: bodyLimit)
            guard let body = try? JSONDecoder().decode(Body.self, from: Data(bytes.readableBytesView)) else {
                throw Refusal(.badRequest, "the request body is malformed")
            }
            return try answer(try await carryOut(body))
        } catch let refusal as Refusal {
            return try answer(AdminAPI.Problem(problem: refusal.problem), refusal.status)
        }
    }

    private static func answer(_ value: some Encodable, _ status: HTTPResponse.Status = .ok) throws -> Response {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        return Response(
            status: status, headers: [.contentType: "application/json"],
            body: .init(byteBuffer: ByteBuffer(bytes: try encoder.encode(value))))
    }
}
