import Delivery
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import Storage

/// Answers the requests of the admin socket. An audited request is in the audit log before it is carried out.
struct AdminResponder: HTTPResponder {
    typealias Context = AdminContext

    private static let bodyLimit = 1 << 20

    let node: NodeService
    let audit: AuditLog
    let logger: Logger

    func respond(to request: Request, context: AdminContext) async throws -> Response {
        guard let kind = AdminRequest(path: request.uri.path), kind.method == request.method else { return Response(status: .notFound) }
        guard let action = kind.audited else { return try await answer(kind, request) }
        guard let user = await context.user else {
            return try Self.answer(AdminAPI.Problem(problem: "the user of the connection is unknown"), .forbidden)
        }
        await append(Self.record(action, .begun, by: user))
        let answered: Result<Response, any Error>
        do { answered = .success(try await answer(kind, request)) } catch { answered = .failure(error) }
        let isSuccess = (try? answered.get())?.status == .ok
        await append(Self.record(action, isSuccess ? .succeeded : .failed, by: user))
        return try answered.get()
    }

    /// No call of the socket reads secrets, and an operator must be able to drain a node whose disk is full: a record that can't be written is logged
    /// instead.
    private func append(_ record: AuditRecord) async {
        do {
            try await audit.appendWithoutBlocking(record)
        } catch {
            logger.error(
                "failed to write audit log",
                metadata: [
                    "action": "\(record.action.rawValue)", "result": "\(record.result.rawValue)", "uid": "\(record.user)",
                    "reason": "\((error as? AuditLog.Failure)?.message ?? "unknown")",
                ])
        }
    }

    private static func record(_ action: AuditedAction, _ result: AuditRecord.Result, by user: UInt32) -> AuditRecord {
        AuditRecord(time: Date(), user: user, source: .socket, action: action, result: result)
    }

    private func answer(_ kind: AdminRequest, _ request: Request) async throws -> Response {
        switch kind {
        case .status: return try Self.answer(await node.status())
        case .health: return try Self.answer(AdminAPI.Health(obstacles: node.obstacles))
        case .peers: return try Self.answer(node.peers)
        case .limits: return try Self.answer(node.limits)
        case .setup: return try Self.answer(node.configuration.setup())
        case .selfTest: return try Self.answer(await node.selfTest())
        case .inspectGorush: return try Self.answer(await node.configuration.inspectGorush())
        case .testPush: return try await Self.answer(request, node.configuration.testPush)
        case .testWebPush: return try await Self.answer(request, node.testWebPush)
        case .drain, .undrain:
            let isOn = kind == .drain
            await node.setDrain(isOn)
            return try Self.answer(AdminAPI.Drain(isOn: isOn))
        case .logLevel:
            return try await Self.answer(request) { (body: AdminAPI.LogLevel) in
                guard let level = Logger.Level(rawValue: body.level) else { throw Refusal(.badRequest, "unknown log level") }
                guard let before = node.setLogLevel(level) else { throw Refusal(.conflict, "the log level of this node can't be changed") }
                return AdminAPI.LogLevel(level: before.rawValue)
            }
        case .outboxRetry:
            return try await Self.answer(request) { (selection: AdminAPI.Selection) in
                AdminAPI.Count(node.delivery.retry(selection.ids), of: selection)
            }
        case .outboxDrop:
            return try await Self.answer(request) { (selection: AdminAPI.Selection) in
                AdminAPI.Count(await node.delivery.drop(selection.ids), of: selection)
            }
        case .registrationsChanged:
            do {
                return try Self.answer(AdminAPI.Count(count: try await node.registrationsChanged()))
            } catch {
                return try Self.answer(AdminAPI.Problem(problem: "\(error)"), .serviceUnavailable)
            }
        }
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
