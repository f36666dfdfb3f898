import Foundation
import NIOPosix
import Core
import SessionProtocol

/// The requests of a body, checked as far as that goes without the store.
struct PreparedBody: Sendable {
    /// Of the body.
    let byteCount: Int
    /// The body as a whole is refused.
    let refusal: RequestError?
    /// Whether the answer is an array.
    let isArray: Bool
    /// In order.
    let entries: [Result<SessionRequest, RequestError>]

    /// Those that go to the store.
    var requests: [SessionRequest] { entries.compactMap { try? $0.get() } }

    /// Of all entries.
    ///
    /// - Parameter answers: of ``requests``.
    func all(_ answers: [RequestAnswer]) -> [RequestAnswer] {
        if let refusal { return [.failed(refusal)] }
        var rest = answers[...]
        return entries.map { entry in
            switch entry {
            case .success: rest.popFirst() ?? .failed(.storeFailed)
            case .failure(let error): .failed(error)
            }
        }
    }
}

extension RequestError {
    static let storeFailed = RequestError(.internalError, "the store failed: nothing was kept", retryAfter: 30)
    static let storeTimeout = RequestError(.serviceTimeout, "the store did not answer in time", retryAfter: 30)
    static let draining = RequestError(
        .internalError, "the server takes no subscriptions at present: nothing was kept", retryAfter: 60)
    static let busy = RequestError(.serviceTimeout, "too many large requests at present", retryAfter: 10)
    /// Its code is that of other refusals by a rule.
    static let limited = RequestError(.error, "the server takes no more subscriptions at present", retryAfter: 60)
}

/// Parses requests, checks their times, and verifies their signatures, on threads of its own: a signature takes 60 to 130 µs, and an array has hundreds.
struct RequestPreparation: Sendable {
    let verifier: SignatureVerifier
    /// Services that a gorush endpoint serves.
    let services: Set<PushService>
    let threads: NIOThreadPool

    static let threadCount = max(ProcessInfo.processInfo.activeProcessorCount, 1)

    init(_ verifier: SignatureVerifier, services: Set<PushService>) {
        self.verifier = verifier
        self.services = services
        threads = NIOThreadPool(numberOfThreads: Self.threadCount)
    }

    /// Runs `body` on one of the threads, and returns what it passes on, then or later. So what follows on a request's preparation needs no other
    /// switch of threads.
    ///
    /// - Parameter body: calls its argument once, on any thread.
    /// - Throws: `CancellationError` when the threads have stopped.
    func onThread<Value: Sendable>(_ body: @escaping @Sendable (@escaping @Sendable (Value) -> Void) -> Void) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            threads.submit { state in
                guard case .active = state else { return continuation.resume(throwing: CancellationError()) }
                body { continuation.resume(returning: $0) }
            }
        }
    }

    /// - Parameters:
    ///   - bytes: of the body, within its limit.
    ///   - isSubscription: which of the two endpoints got it.
    ///   - now: Unix seconds.
    func prepare(_ bytes: [UInt8], isSubscription: Bool, at now: Int64) -> PreparedBody {
        do throws(RequestError) {
            switch try RequestBody(parsing: bytes) {
            case .one(let value):
                return PreparedBody(byteCount: bytes.count, refusal: nil, isArray: false, entries: [entry(value, isSubscription, now)])
            case .many(let values):
                let entries = values.map { entry($0, isSubscription, now) }
                return PreparedBody(byteCount: bytes.count, refusal: nil, isArray: true, entries: entries)
            }
        } catch {
            return PreparedBody(byteCount: bytes.count, refusal: error, isArray: false, entries: [])
        }
    }

    private func entry(_ value: JSONValue, _ isSubscription: Bool, _ now: Int64) -> Result<SessionRequest, RequestError> {
        Result { () throws(RequestError) in
            let rules = SubscriptionRules(availableServices: services)
            if isSubscription {
                let form = try SubscriptionForm(value)
                try rules.admit(form, at: now)
                try verifier.verify(form)
                return .subscribe(form)
            } else {
                let form = try UnsubscriptionForm(value)
                try rules.admit(form, at: now)
                try verifier.verify(form)
                return .unsubscribe(form)
            }
        }
    }
}
