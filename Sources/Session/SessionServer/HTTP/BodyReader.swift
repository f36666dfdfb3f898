import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// Reads request bodies in bounded memory: a small allowance for each request, and a budget shared by large bodies.
final class BodyReader: Sendable {
    enum Result: Sendable {
        case body([UInt8])
        /// The body is over the limit; the rest is not kept.
        case tooLarge
        /// The budget is used up by other large bodies.
        case busy
    }

    /// Allowance of each request in bytes, not counted against the budget.
    private static let freeByteCount = 160 << 10

    private let budget: Int
    private let used = Mutex(0)

    /// - Parameter budget: limit of all large bodies together, in bytes.
    init(budget: Int) {
        self.budget = budget
    }

    /// Passes the body to `use`, and releases its share of the budget when `use` returns.
    ///
    /// - Parameters:
    ///   - request: a request whose body has not been read.
    ///   - limit: maximum size of the body in bytes.
    ///   - use: called with the result.
    /// - Throws: an error of the connection.
    func read<Answer>(_ request: Request, upTo limit: Int, _ use: (Result) async throws -> Answer) async throws -> Answer {
        // Answers before the body is sent, for clients that wait for 100 Continue.
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limit { return try await use(.tooLarge) }
        var reserved = 0
        defer { release(reserved) }
        var bytes: [UInt8] = []
        for try await chunk in request.body {
            let count = bytes.count + chunk.readableBytes
            guard count <= limit else { return try await use(.tooLarge) }
            let needed = count - Self.freeByteCount - reserved
            if needed > 0 {
                guard reserve(needed) else { return try await use(.busy) }
                reserved += needed
            }
            bytes += chunk.readableBytesView
        }
        return try await use(.body(bytes))
    }

    private func reserve(_ count: Int) -> Bool {
        used.withLock { used in
            guard used + count <= budget else { return false }
            used += count
            return true
        }
    }

    private func release(_ count: Int) {
        if count > 0 { used.withLock { $0 -= count } }
    }
}
