import Foundation
import HTTPService
import Hummingbird
import Logging

/// Serves `AdminAPI` over a Unix socket in the node's data folder, which only the folder's owner can open.
struct AdminServer {
    let node: NodeService
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
