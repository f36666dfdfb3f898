import Delivery
import HTTPTypes
import Hummingbird
import NIOCore
import NodeMetrics
import Core
import WakuCrypto

/// `POST /feedback`: a JSON object for each failed token, as gorush's `feedback_hook_url` sends it.
///
/// | status | when |
/// |---|---|
/// | 200 | accepted, and processed later: gorush logs any other status as an error |
/// | 400 | not a failure as JSON |
/// | 401 | no secret |
/// | 403 | wrong secret |
/// | 413 | body over 64 KiB |
/// | 503 | queue full |
///
/// The secret comes in the header `X-Waku-Push-Secret`, or as `Authorization: Bearer …`. gorush sends what its `core.feedback_header` lists,
/// each as `Name:value`; gorush silently drops a value with a colon in it.
struct FeedbackEndpoint: Sendable {
    static let byteLimit = 64 << 10

    /// The secret in force; nil refuses all posts.
    let secret: @Sendable () -> FeedbackSecret?
    let feedback: Feedback
    let counters: Counters

    func answer(_ request: Request) async -> HTTPResponse.Status {
        guard let presented = Self.secret(in: request.headers) else {
            counters.add(.feedbackForbidden)
            return .unauthorized
        }
        guard matches(presented) else {
            counters.add(.feedbackForbidden)
            return .forbidden
        }
        guard let body = try? await request.body.collect(upTo: Self.byteLimit) else {
            counters.add(.feedbackMalformed)
            return .contentTooLarge
        }
        guard let failure = GorushFailure(parsing: Array(body.readableBytesView)) else {
            counters.add(.feedbackMalformed)
            return .badRequest
        }
        guard feedback.take(failure) else {
            counters.add(.feedbackShed)
            return .serviceUnavailable
        }
        counters.add(.feedbackReceived)
        return .ok
    }

    private static func secret(in headers: HTTPFields) -> FeedbackSecret? {
        if let name = HTTPField.Name("X-Waku-Push-Secret"), let value = headers[name] { return FeedbackSecret(value) }
        guard let value = headers[.authorization] else { return nil }
        let scheme = "Bearer "
        return value.lowercased().hasPrefix(scheme.lowercased()) ? FeedbackSecret(String(value.dropFirst(scheme.count))) : nil
    }

    /// Compares hashes, so that timing does not disclose the length of the secret.
    private func matches(_ presented: FeedbackSecret) -> Bool {
        guard let secret = secret() else { return false }
        return constantTimeEqual(SHA256.hash(presented.bytes), SHA256.hash(secret.bytes))
    }
}
