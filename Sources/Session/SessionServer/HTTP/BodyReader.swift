import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// Reads bodies of requests in bounded memory: a small part of each request, and a budget that large ones share.
final class BodyReader: Sendable {
    enum Result: Sendable {
        case body([UInt8])
        /// Longer than allowed: the rest is not read into memory.
        case tooLarge
        /// Other large bodies take up the memory for them.
        case busy
    }

    /// Of each request, without a share of the budget: more than any valid request has.
    private static let freeByteCount = 160 << 10

    private let budget: Int
    private let used = Mutex(0)

    /// - Parameter budget: bytes of all large bodies together.
    init(budget: Int) {
        self.budget = budget
    }

    /// Hands over the body, and keeps its share of the budget until `use` returns.
    ///
    /// - Parameters:
    ///   - request: its body is not read yet.
    ///   - limit: of its bytes.
    ///   - use: gets the result.
    /// - Throws: an error of the connection.
    func read<Answer>(_ request: Request, upTo limit: Int, _ use: (Result) async throws -> Answer) async throws -> Answer {
        // Answered before the body is sent, if the client waits for that.
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
