import Core
import SessionProtocol
import WakuCrypto

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
    static let storeFailed = RequestError(.internalError, "the store failed: nothing was stored", retryAfter: 30)
    static let storeTimeout = RequestError(.serviceTimeout, "the store did not answer in time", retryAfter: 30)
    static let draining = RequestError(
        .internalError, "the server is draining and accepts no subscriptions", retryAfter: 60)
    /// Nodes of a cluster are restarted one after the other with another VAPID key, or with Web Push.
    static let webPushChanging = RequestError(.internalError, "the server's VAPID keys are being changed", retryAfter: 60)
    /// Nodes of a cluster are upgraded one after the other, and not all know Web Push yet.
    static let webPushUnknown = RequestError(
        .internalError, "the server is being upgraded and accepts no webpush devices yet", retryAfter: 60)
    static let busy = RequestError(.serviceTimeout, "too many large requests at present", retryAfter: 10)
    /// Too many requests wait, or this one has waited for too long.
    static let overloaded = RequestError(.serviceTimeout, "too many requests at present", retryAfter: 10)
    static let notChecked = RequestError(
        .error, "signature: not checked, because \(RequestPreparation.invalidSignatureLimit) signatures of this array are invalid")
    /// The error of a rate limit. It has the code of other refusals by rules.
    static let limited = RequestError(.error, "the server accepts no more subscriptions at present", retryAfter: 60)
}

/// Parses requests, checks their times and verifies their signatures.
struct RequestPreparation: Sendable {
    /// An array is given up after this number of invalid signatures.
    static let invalidSignatureLimit = 3

    let verifier: SignatureVerifier
    /// Push services with a gorush endpoint.
    let services: Set<PushService>
    /// The node's VAPID keys.
    var webPushKeys: [P256PublicKey] = []
    /// Whether other nodes of the cluster have other VAPID keys at present: another node may accept what this one refuses.
    var isWebPushChanging: @Sendable () -> Bool = { false }
    /// Whether a node of the cluster does not know Web Push: it could not notify the device.
    var isWebPushUnknown: @Sendable () -> Bool = { false }

    /// - Parameters:
    ///   - bytes: the body, within its size limit.
    ///   - isSubscription: true for `/subscribe`, false for `/unsubscribe`.
    ///   - now: Unix seconds.
    func prepare(_ bytes: [UInt8], isSubscription: Bool, at now: Int64) -> PreparedBody {
        do throws(RequestError) {
            let (values, isArray) =
                switch try RequestBody(parsing: bytes) {
                case .one(let value): ([value], false)
                case .many(let values): (values, true)
                }
            var invalidCount = 0
            let entries = values.map { entry($0, isSubscription: isSubscription, now: now, invalidCount: &invalidCount) }
            return PreparedBody(byteCount: bytes.count, refusal: nil, isArray: isArray, entries: entries)
        } catch {
            return PreparedBody(byteCount: bytes.count, refusal: error, isArray: false, entries: [])
        }
    }

    /// - Parameter invalidCount: the number of invalid signatures of the array so far.
    private func entry(
        _ value: JSONValue, isSubscription: Bool, now: Int64, invalidCount: inout Int
    ) -> Result<SessionRequest, RequestError> {
        guard invalidCount < Self.invalidSignatureLimit else { return .failure(.notChecked) }
        let rules = SubscriptionRules(availableServices: services)
        let request: SessionRequest
        do throws(RequestError) {
            if isSubscription {
                let form = try SubscriptionForm(value)
                if form.device.service == .webPush, !services.contains(.webPush), isWebPushChanging() { throw .webPushChanging }
                try rules.admit(form, at: now)
                if let key = form.device.webPushKey, !webPushKeys.contains(key) {
                    throw isWebPushChanging()
                        ? .webPushChanging : RequestError(.badInput, "service_info: vapid is not a key of this server")
                }
                if form.device.service == .webPush, isWebPushUnknown() { throw .webPushUnknown }
                request = .subscribe(form)
            } else {
                let form = try UnsubscriptionForm(value)
                try rules.admit(form, at: now)
                request = .unsubscribe(form)
            }
        } catch {
            return .failure(error)
        }
        do throws(RequestError) {
            try verifier.verify(request.form)
            return .success(request)
        } catch {
            invalidCount += 1
            return .failure(error)
        }
    }
}
