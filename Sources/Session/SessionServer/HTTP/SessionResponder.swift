import HTTPTypes
import Hummingbird
import NIOCore
import NodeMetrics
import NodeAPI
import SessionProtocol
import Core
import Waku
import WakuCrypto

/// Answers the requests of ``SessionEndpoint``, including those inside onion requests.
struct SessionResponder: HTTPResponder {
    typealias Context = SessionRequestContext

    let preparation: RequestPreparation
    let workers: FairWorkers
    let commits: SubscriptionCommits
    let onionKey: OnionKey
    let bodies: BodyReader
    let counters: Counters
    let clients: ClientAddresses
    let limits: SessionLimits
    let noteRequest: @Sendable (_ isForwarded: Bool) -> Void
    let now: @Sendable () -> Timestamp

    func respond(to request: Request, context: Context) async throws -> Response {
        let path = percentDecoded(request.uri.path) ?? request.uri.path
        switch SessionEndpoint.route(method: request.method.rawValue, path: path, isInsideOnion: false) {
        // Other methods of a path are answered before: see `MethodRouting`.
        case .notFound, .methodNotAllowed: return Self.text(.notFound, Self.nothing)
        case .found(.health): return Self.text(.ok, "ok")
        case .found(.webPushKey):
            guard let webPushKey else { return Self.text(.notFound, Self.nothing) }
            return Self.response(.ok, type: "application/json", text: webPushKey, retryAfter: nil)
        case .found(.onion): return try await onion(request, from: client(of: request, context))
        case .found(let endpoint):
            let client = client(of: request, context)
            return try await bodies.read(request, from: client.network, upTo: SessionProtocol.RequestBody.maximumByteCount) { body in
                switch body {
                case .body(let bytes):
                    Self.json(try await answer(bytes, at: endpoint, from: client, times(of: bytes, caller: request.headers)))
                case .tooLarge: Self.json(refused(SessionProtocol.RequestBody.tooLarge, at: endpoint))
                case .busy: Self.json(refused(.busy, at: endpoint))
                }
            }
        }
    }

    private static let nothing = "there is nothing at this path"

    /// Whether this node has the endpoint.
    func serves(_ endpoint: SessionEndpoint) -> Bool { endpoint != .webPushKey || webPushKey != nil }

    /// The VAPID public key, for subscriptions, as JSON; nil without Web Push.
    private var webPushKey: String? { preparation.webPushKeys.first.map { #"{"key":"\#(Base64URL.encode($0.bytes))"}"# } }

    private func client(of request: Request, _ context: Context) -> RequestSender {
        let forwardedFor = request.headers.filter { $0.name.canonicalName == "x-forwarded-for" }.map(\.value)
        noteRequest(!forwardedFor.isEmpty && context.peer.map { !clients.isProxy($0) } ?? false)
        let network = clients.network(peer: context.peer, forwardedFor: forwardedFor)
        limits.worked(for: network)
        return context.sender(in: network)
    }

    /// The start of a request, with its trace as a part of the caller's.
    private func times(of body: [UInt8], caller headers: HTTPFields = [:]) -> MessageTimes {
        let trace = counters.tracer.map { tracer in
            let caller = HTTPField.Name(TraceContext.header).flatMap { headers[$0] }.flatMap { TraceContext(traceparent: $0) }
            return tracer.begin(.session, .http, caller: caller, byteCount: body.count)
        }
        return MessageTimes(received: .now, delay: nil, protocol: .session, trace: trace)
    }

    // MARK: Subscriptions

    /// JSON, and the seconds after which to retry if any request failed for a temporary reason: then the status is 503.
    private struct Answer {
        let json: String
        let retryAfter: Int?
    }

    private func answer(
        _ body: [UInt8], at endpoint: SessionEndpoint, from client: RequestSender, _ times: MessageTimes
    ) async throws -> Answer {
        let committed = try await workers.run(for: client, byteCount: body.count) {
            [preparation, commits, counters, now] (pass: @escaping @Sendable (Committed) -> Void) in
            let prepared = preparation.prepare(body, isSubscription: endpoint == .subscribe, at: now().seconds)
            times.trace?.mark(.decoded, .registration)
            commits.commit(prepared.requests, of: client.network, byteCount: prepared.byteCount) {
                counters.reached(.durable, .registration, times: times)
                pass((prepared, $0))
            }
        }
        guard let (prepared, answers) = committed else {
            limits.refusedTurn()
            times.trace?.fail("too many requests")
            return refused(.overloaded, at: endpoint)
        }
        let answer = answer(to: prepared, answers, at: endpoint)
        if answer.retryAfter != nil { times.trace?.fail("request not stored") }
        counters.reached(.answered, .registration, times: times)
        return answer
    }

    /// The requests of a body, and the answers to the valid ones.
    private typealias Committed = (prepared: PreparedBody, answers: [RequestAnswer])

    private func answer(to prepared: PreparedBody, _ answers: [RequestAnswer], at endpoint: SessionEndpoint) -> Answer {
        let all = prepared.all(answers)
        for answer in all { counters.increment(.sessionRequests, endpoint.label, SessionAnswerLabel(answer)) }
        return Answer(
            json: prepared.isArray ? RequestAnswer.json(of: all) : all.first?.json ?? "", retryAfter: all.compactMap(\.retryAfter).max())
    }

    private func refused(_ error: RequestError, at endpoint: SessionEndpoint) -> Answer {
        counters.increment(.sessionRequests, endpoint.label, SessionAnswerLabel(.failed(error)))
        return Answer(json: RequestAnswer.failed(error).json, retryAfter: error.retryAfter)
    }

    /// Answers a body that came without HTTP.
    ///
    /// - Returns: the JSON of the answer, and whether its status would be 503.
    func answer(_ body: [UInt8], at endpoint: SessionEndpoint) async throws -> (json: String, isUnavailable: Bool) {
        let client = RequestSender(network: SenderNetwork(nil), connection: ObjectIdentifier(commits))
        let answer = try await answer(body, at: endpoint, from: client, MessageTimes(received: .now, delay: nil, protocol: .session))
        return (answer.json, answer.retryAfter != nil)
    }

    // MARK: Onion requests

    /// The content of an onion request.
    private enum Inside: Sendable {
        case requests(PreparedBody, SessionEndpoint, [RequestAnswer])
        case answered(OnionInnerResponse)
    }

    private func onion(_ request: Request, from client: RequestSender) async throws -> Response {
        try await bodies.read(request, from: client.network, upTo: OnionRequest.maximumByteCount) { body in
            switch body {
            case .body(let bytes): try await onion(bytes, from: client)
            case .tooLarge: refused(.tooLarge)
            case .busy: Self.unavailable(.busy)
            }
        }
    }

    private func onion(_ body: [UInt8], from client: RequestSender) async throws -> Response {
        typealias Opened = Result<(onion: OpenedOnion, inside: Inside), OnionError>
        // Without the header, which is the last server's of the path.
        let times = times(of: body)
        let opened = try await workers.run(for: client, byteCount: body.count) {
            [self] (pass: @escaping @Sendable (Opened) -> Void) in
            do throws(OnionError) {
                let onion = try onionKey.open(body)
                times.trace?.mark(.decoded)
                handle(onion.plain, from: client.network) { inside in
                    if case .requests = inside { counters.reached(.durable, .registration, times: times) }
                    pass(.success((onion, inside)))
                }
            } catch {
                pass(.failure(error))
            }
        }
        switch opened {
        case nil:
            limits.refusedTurn()
            times.trace?.fail("too many requests")
            return Self.unavailable(.overloaded)
        case .failure(let error): return refused(error)
        case .success((let onion, let inside)):
            let answer: OnionInnerResponse
            switch inside {
            case .answered(let response):
                answer = response
                times.trace?.mark(.answered)
            case .requests(let prepared, let endpoint, let answers):
                let own = self.answer(to: prepared, answers, at: endpoint)
                answer = .json(own.json, retryAfter: own.retryAfter)
                counters.reached(.answered, .registration, times: times)
            }
            counters.increment(.sessionOnionRequests, SessionOnionLabel.answered)
            return Response(
                status: .ok, headers: [.contentType: "application/octet-stream"],
                body: .init(byteBuffer: ByteBuffer(bytes: onion.seal(answer))))
        }
    }

    /// - Parameter completion: called once, after the requests inside are durable or have failed.
    private func handle(_ plain: [UInt8], from network: SenderNetwork, completion: @escaping @Sendable (Inside) -> Void) {
        guard let request = try? OnionInnerRequest(parsing: plain) else { return completion(.answered(.failure(400, "not a request"))) }
        switch SessionEndpoint.route(method: request.method, path: request.path, isInsideOnion: true) {
        case .notFound, .found(.onion): completion(.answered(.failure(404, Self.nothing)))
        case .methodNotAllowed: completion(.answered(.failure(405, "this path has another method")))
        case .found(.health): completion(.answered(.failure(200, "ok")))
        case .found(.webPushKey): completion(.answered(webPushKey.map { .json($0) } ?? .failure(404, Self.nothing)))
        case .found(let endpoint):
            let prepared = preparation.prepare(Array(request.body ?? []), isSubscription: endpoint == .subscribe, at: now().seconds)
            commits.commit(prepared.requests, of: network, byteCount: prepared.byteCount) { completion(.requests(prepared, endpoint, $0)) }
        }
    }

    private func refused(_ error: OnionError) -> Response {
        counters.increment(.sessionOnionRequests, SessionOnionLabel(error))
        return Self.text(HTTPResponse.Status(code: error.status), error.text)
    }

    // MARK: Responses

    private static func json(_ answer: Answer) -> Response {
        response(
            answer.retryAfter == nil ? .ok : .serviceUnavailable, type: "application/json", text: answer.json, retryAfter: answer.retryAfter
        )
    }

    private static func unavailable(_ error: RequestError) -> Response {
        text(.serviceUnavailable, error.message, retryAfter: error.retryAfter)
    }

    private static func text(_ status: HTTPResponse.Status, _ line: String, retryAfter: Int? = nil) -> Response {
        response(status, type: "text/plain; charset=utf-8", text: line + "\n", retryAfter: retryAfter)
    }

    private static func response(_ status: HTTPResponse.Status, type: String, text: String, retryAfter: Int?) -> Response {
        var headers: HTTPFields = [.contentType: type]
        if let retryAfter { headers[.retryAfter] = String(retryAfter) }
        return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(string: text)))
    }
}

extension SessionEndpoint {
    fileprivate var label: SessionEndpointLabel { self == .subscribe ? .subscribe : .unsubscribe }
}
