import Delivery
import Gorush
import HTTPTypes
import Hummingbird
import NIOCore
import NodeMetrics
import PushTypes
import StatusProtocol
import WakuCrypto

/// `POST /feedback`: one JSON object a failed token, as gorush's `feedback_hook_url` sends it.
///
/// | answer | when |
/// |---|---|
/// | 204 | taken: what follows from it follows later |
/// | 400 | not a failure in JSON |
/// | 401 | without a secret |
/// | 403 | with another secret |
/// | 413 | over 64 KiB |
/// | 503 | too many wait |
///
/// The secret comes in the header `X-Waku-Push-Secret`, or as `Authorization: Bearer …`. gorush sends what its `core.feedback_header` lists,
/// each as `Name:value`; a value with a colon in it is left out by gorush without a word.
struct FeedbackEndpoint: Sendable {
    static let byteLimit = 64 << 10

    let secret: FeedbackSecret
    let feedback: Feedback
    let counters: Counters

    func answer(_ request: Request) async -> HTTPResponse.Status {
        guard let presented = Self.secret(in: request.headers) else {
            counters.add(.feedbackForbidden)
            return .unauthorized
        }
        guard isRight(presented) else {
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
        return .noContent
    }

    private static func secret(in headers: HTTPFields) -> FeedbackSecret? {
        if let name = HTTPField.Name("X-Waku-Push-Secret"), let value = headers[name] { return FeedbackSecret(value) }
        guard let value = headers[.authorization] else { return nil }
        let scheme = "Bearer "
        return value.lowercased().hasPrefix(scheme.lowercased()) ? FeedbackSecret(String(value.dropFirst(scheme.count))) : nil
    }

    /// Hashes are compared, so that not even the length of the secret shows.
    private func isRight(_ presented: FeedbackSecret) -> Bool {
        constantTimeEqual(SHA256.hash(presented.bytes), SHA256.hash(secret.bytes))
    }
}
