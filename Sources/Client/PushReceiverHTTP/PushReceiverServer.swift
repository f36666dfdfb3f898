import Core
import HTTPService
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
public import PushReceiver
import Synchronization

/// The HTTP server of a Web Push receiver.
public struct PushReceiverServer: Sendable {
    /// The result of a request.
    public enum Event: Sendable {
        /// Answered 201 once the handler returns.
        case received(ReceivedNotification)
        case refused(PushInbox.Refusal)
    }

    private let listener: HTTPListener
    private let reception: Reception
    private let bodyByteLimit: Int
    private let handle: @Sendable (Event) async throws -> Void

    /// - Parameters:
    ///   - port: 0 for any free port.
    ///   - certificate: PEM; nil for plain HTTP behind a proxy. The chain is the server's own certificate, then those of the authorities between it
    ///     and the one that senders trust; the key is that of the first.
    ///   - handle: receives the result of each request; called concurrently. If it throws for a notification, the answer is 503, and the server
    ///     that sent it tries again.
    /// - Returns: nil for certificates or a key that are not valid.
    public init?(
        _ inbox: PushInbox, host: String, port: Int, certificate: (chain: [UInt8], key: [UInt8])?,
        handle: @escaping @Sendable (Event) async throws -> Void
    ) {
        var identity: TLSIdentity?
        if let certificate {
            guard let made = TLSIdentity(certificate: certificate.chain, key: certificate.key) else { return nil }
            identity = made
        }
        // Push servers send the public name of a proxy as Host. Browsers can read nothing here.
        listener = HTTPListener(
            .hostname(host, port: port), limits: HTTPLimits(.status), hosts: nil, tls: identity,
            logger: Logger(label: "push receiver") { _ in SwiftLogNoOpLogHandler() })
        reception = Reception(inbox)
        bodyByteLimit = inbox.limits.bodyByteCount
        self.handle = handle
    }

    /// Receives for another subscription, too.
    public func add(_ subscription: ReceiverSubscription) {
        reception.state.withLock { $0.inbox.add(subscription) }
    }

    /// Ends a subscription: see `PushInbox.remove(_:)`.
    public func remove(_ subscription: ReceiverSubscription) {
        reception.state.withLock { $0.inbox.remove(subscription) }
    }

    /// Serves until the task is cancelled.
    ///
    /// - Parameter bound: gets the port.
    /// - Throws: NIO's error for an address that can't be listened on.
    public func run(bound: @escaping @Sendable (Int) async -> Void) async throws {
        let responder = MethodRouting(CallbackResponder(callback: respond)) { _ in [.post] }
        try await listener.run(responder) { channel in
            if let port = channel.localAddress?.port { await bound(port) }
        }
    }

    @Sendable private func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        var pushed = PushInbox.Request(path: request.uri.path)
        pushed.authorization = request.headers[.authorization]
        pushed.contentEncoding = request.headers[.contentEncoding]
        pushed.ttl = Self.ttl.flatMap { request.headers[$0] }
        let length = request.headers[.contentLength].flatMap { Int($0) } ?? 0
        if length <= bodyByteLimit {
            // Throws for a body that is longer without saying so, and for one that breaks off.
            pushed.body = (try? await request.body.collect(upTo: bodyByteLimit)).map { Array($0.readableBytesView) }
        }
        switch reception.begin(pushed, at: .now()) {
        case .received(let notification):
            do {
                try await handle(.received(notification))
            } catch {
                reception.end(notification, isStored: false)
                return Self.unavailable
            }
            reception.end(notification, isStored: true)
            return Self.created
        case .repeated(let notification):
            return reception.isUnderWay(notification) ? Self.unavailable : Self.created
        case .refused(let refusal):
            try? await handle(.refused(refusal))
            var response = Response(status: HTTPResponse.Status(code: refusal.status))
            if case .tooMany(let seconds) = refusal { response.headers[.retryAfter] = "\(seconds)" }
            return response
        }
    }

    /// The receiver has the message already, so that nothing is kept for the time that the sender wished.
    private static var created: Response {
        var response = Response(status: .created)
        if let ttl { response.headers[ttl] = "0" }
        return response
    }

    /// The message is not stored, or not yet.
    private static var unavailable: Response {
        Response(status: .serviceUnavailable, headers: [.retryAfter: "1"])
    }

    private static let ttl = HTTPField.Name("TTL")
}

/// The inbox, and the notifications that the handler has not finished.
private final class Reception: Sendable {
    let state: Mutex<(inbox: PushInbox, underWay: Set<String>)>

    init(_ inbox: PushInbox) {
        state = Mutex((inbox, []))
    }

    func begin(_ request: PushInbox.Request, at now: Timestamp) -> PushInbox.Outcome {
        state.withLock { state in
            let outcome = state.inbox.receive(request, at: now)
            if case .received(let notification) = outcome, let id = notification.id { state.underWay.insert(id) }
            return outcome
        }
    }

    func end(_ notification: ReceivedNotification, isStored: Bool) {
        guard let id = notification.id else { return }
        state.withLock { state in
            state.underWay.remove(id)
            if !isStored { state.inbox.forget(notification) }
        }
    }

    func isUnderWay(_ notification: ReceivedNotification) -> Bool {
        guard let id = notification.id else { return false }
        return state.withLock { $0.underWay.contains(id) }
    }
}
