import Foundation
import NIOPosix
import Core
import SessionProtocol

/// The requests of a body after all checks that do not need the store.
struct PreparedBody: Sendable {
    /// The size of the body.
    let byteCount: Int
    /// The error if the whole body is refused.
    let refusal: RequestError?
    /// Whether the answer is an array.
    let isArray: Bool
    /// The entries of the body, in order.
    let entries: [Result<SessionRequest, RequestError>]

    /// The valid requests, which go to the store.
    var requests: [SessionRequest] { entries.compactMap { try? $0.get() } }

    /// The answers to all entries.
    ///
    /// - Parameter answers: the answers to ``requests``.
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
    /// The error of a rate limit. It has the code of other refusals by rules.
    static let limited = RequestError(.error, "the server takes no more subscriptions at present", retryAfter: 60)
}

/// Parses requests, checks their times and verifies their signatures on separate threads: a signature takes 60 to 130 µs, and an array may have
/// hundreds.
struct RequestPreparation: Sendable {
    let verifier: SignatureVerifier
    /// Push services with a gorush endpoint.
    let services: Set<PushService>
    let threads: NIOThreadPool

    static let threadCount = max(ProcessInfo.processInfo.activeProcessorCount, 1)

    init(_ verifier: SignatureVerifier, services: Set<PushService>) {
        self.verifier = verifier
        self.services = services
        threads = NIOThreadPool(numberOfThreads: Self.threadCount)
    }

    /// Runs `body` on one of the threads, and returns the value that it passes to its argument, immediately or later. So the steps after the
    /// preparation need no further thread switch.
    ///
    /// - Parameter body: must call its argument once, on any thread.
    /// - Throws: `CancellationError` if the threads have stopped.
    func onThread<Value: Sendable>(_ body: @escaping @Sendable (@escaping @Sendable (Value) -> Void) -> Void) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            threads.submit { state in
                guard case .active = state else { return continuation.resume(throwing: CancellationError()) }
                body { continuation.resume(returning: $0) }
            }
        }
    }

    /// - Parameters:
    ///   - bytes: the body, within its size limit.
    ///   - isSubscription: true for `/subscribe`, false for `/unsubscribe`.
    ///   - now: Unix seconds.
    func prepare(_ bytes: [UInt8], isSubscription: Bool, at now: Int64) -> PreparedBody {
        do throws(RequestError) {
            switch try RequestBody(parsing: bytes) {
            case .one(let value):
                return PreparedBody(
                    byteCount: bytes.count, refusal: nil, isArray: false, entries: [entry(value, isSubscription: isSubscription, now: now)])
            case .many(let values):
                let entries = values.map { entry($0, isSubscription: isSubscription, now: now) }
                return PreparedBody(byteCount: bytes.count, refusal: nil, isArray: true, entries: entries)
            }
        } catch {
            return PreparedBody(byteCount: bytes.count, refusal: error, isArray: false, entries: [])
        }
    }

    private func entry(_ value: JSONValue, isSubscription: Bool, now: Int64) -> Result<SessionRequest, RequestError> {
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
