import Foundation
import HTTPService
import Hummingbird
import Logging
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
    func testWebPush(_ test: AdminAPI.WebPushTest) async -> AdminAPI.WebPushTested
    /// Inspects each gorush server.
    func inspectGorush() async -> [AdminAPI.InspectedGorush]
}

/// Serves `AdminAPI` over a Unix socket in the node's data folder, which only the folder's owner can open.
struct AdminServer {
    let node: any AdminOperations
    let socket: AdminSocket
    let audit: AuditLog
    let logger: Logger

    /// Serves until the task is cancelled.
    func run() async throws {
        // The folder is locked, so an existing socket was left by an earlier process.
        unlink(socket.path)
        defer { unlink(socket.path) }
        // Browsers can't connect to a Unix socket, so any host name is allowed.
        let listener = HTTPListener(
            .unixDomainSocket(path: socket.path), limits: HTTPLimits(.admin), hosts: nil, logger: logger)
        let responder = MethodRouting(AdminResponder(node: node, audit: audit, logger: logger)) { path in
            AdminRequest(path: path).map { [$0.method] } ?? []
        }
        try await listener.run(responder) { [socket] _ in chmod(socket.path, 0o600) }
    }
}
