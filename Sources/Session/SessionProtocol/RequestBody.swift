package import Core

/// The body of `/subscribe` and `/unsubscribe`: one request, or an array of 1 to 1,000, which is answered by an array in the same order.
package enum RequestBody: Sendable {
    case one(JSONValue)
    case many([JSONValue])

    package static let maximumByteCount = 100_000
    package static let maximumEntryCount = 1000

    /// - Throws: ``RequestError/Code/badInput``
    package init(parsing bytes: [UInt8]) throws(RequestError) {
        guard !bytes.isEmpty else { throw RequestError(.badInput, "the request has no body") }
        guard bytes.count <= Self.maximumByteCount else { throw Self.tooLarge }
        switch try? JSONValue(parsing: bytes) {
        case nil: throw RequestError(.badInput, "the body is not JSON")
        case .array(let entries):
            guard 1...Self.maximumEntryCount ~= entries.count else {
                throw RequestError(.badInput, "expected 1 to \(Self.maximumEntryCount) requests in the array")
            }
            self = .many(entries)
        case .object(let object): self = .one(.object(object))
        case .some: throw RequestError(.badInput, "expected a JSON object or an array of objects")
        }
    }

    /// The error for a body over ``maximumByteCount``, for callers that count bytes as they arrive.
    package static var tooLarge: RequestError { RequestError(.badInput, "the body is larger than \(maximumByteCount) bytes") }
}

/// The answer to a request.
package enum RequestAnswer: Hashable, Sendable {
    case added
    case updated
    /// The answer to an unsubscription: whether a subscription was removed.
    case removed(Bool)
    case failed(RequestError)

    package var json: String {
        switch self {
        case .added: #"{"success":true,"added":true,"message":"Subscription successful"}"#
        case .updated: #"{"success":true,"updated":true,"message":"Resubscription successful"}"#
        case .removed(true): #"{"success":true,"removed":true,"message":"Device unsubscribed from push notifications"}"#
        case .removed(false): #"{"success":true,"removed":false,"message":"Device was not subscribed to push notifications"}"#
        case .failed(let error): #"{"error":\#(error.code.rawValue),"message":\#(jsonText(error.message))}"#
        }
    }

    /// Seconds; nil unless the request failed for a temporary reason: ``RequestError/retryAfter``.
    package var retryAfter: Int? {
        if case .failed(let error) = self { error.retryAfter } else { nil }
    }

    /// The answer to an array.
    package static func json(of answers: [RequestAnswer]) -> String {
        "[" + answers.map(\.json).joined(separator: ",") + "]"
    }
}
