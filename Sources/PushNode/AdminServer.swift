import Foundation
import HTTPService
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// What an operator asks a running node, over a Unix socket in its data folder, for the folder's owner alone: ``AdminAPI``.
struct AdminServer {
    private static let bodyLimit = 1 << 20

    let node: PushNode
    let socket: AdminSocket

    /// Serves until the task is cancelled.
    func run() async throws {
        // The folder is locked: what is there was left by a process that is gone.
        unlink(socket.path)
        defer { unlink(socket.path) }
        // No browser comes to a Unix socket: any name is as good as another.
        let listener = HTTPListener(
            .unixDomainSocket(path: socket.path), limits: HTTPLimits(.admin), hosts: nil, logger: node.logger)
        try await listener.run(router.buildResponder()) { [socket] _ in chmod(socket.path, 0o600) }
    }

    private var router: Router<BasicRequestContext> {
        let node = node
        let router = Router()
        router.get("status") { _, _ in try Self.answer(await node.status()) }
        router.get("peers") { _, _ in try Self.answer(node.peers) }
        router.post("drain") { request, _ in
            try await Self.answer(request) { (wish: AdminAPI.Drain) in
                await node.setDrain(wish.isOn)
                return wish
            }
        }
        router.post("log-level") { request, _ in
            try await Self.answer(request) { (wish: AdminAPI.LogLevel) in
                guard let level = Logger.Level(rawValue: wish.level) else { throw Refusal(.badRequest, "there is no such level") }
                guard let before = node.setLogLevel(level) else { throw Refusal(.conflict, "this node's log can't be changed") }
                return AdminAPI.LogLevel(level: before.rawValue)
            }
        }
        router.post("outbox/retry") { request, _ in
            try await Self.answer(request) { (wanted: AdminAPI.Selection) in AdminAPI.Count(count: node.retry(wanted.ids)) }
        }
        router.post("outbox/drop") { request, _ in
            try await Self.answer(request) { (wanted: AdminAPI.Selection) in AdminAPI.Count(count: await node.dropWaiting(wanted.ids)) }
        }
        router.post("registrations/changed") { _, _ in
            do {
                return try Self.answer(AdminAPI.Count(count: try node.registrationsChanged()))
            } catch {
                return try Self.answer(AdminAPI.Problem(problem: "\(error)"), .serviceUnavailable)
            }
        }
        router.post("self-test") { _, _ in try Self.answer(await node.selfTest()) }
        router.get("setup") { _, _ in try Self.answer(node.configuration.setup()) }
        router.post("gorush/inspect") { _, _ in try Self.answer(await node.configuration.inspectGorush()) }
        return router
    }

    private struct Refusal: Error {
        let status: HTTPResponse.Status
        let problem: String

        init(_ status: HTTPResponse.Status, _ problem: String) {
            self.status = status
            self.problem = problem
        }
    }

    private static func answer<Wish: Decodable, Outcome: Encodable>(
        _ request: Request, _ carryOut: (Wish) async throws -> Outcome
    ) async throws -> Response {
        do {
            let body = try await request.body.collect(upTo: bodyLimit)
            guard let wish = try? JSONDecoder().decode(Wish.self, from: Data(body.readableBytesView)) else {
                throw Refusal(.badRequest, "the body is not as it should be")
            }
            return try answer(try await carryOut(wish))
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
