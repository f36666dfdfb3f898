import HTTPService
import HTTPTypes
import Hummingbird
import NIOCore
import SessionProtocol
import Synchronization

/// Reads request bodies in bounded memory: a small allowance for each request, and ``BodyRoom`` for large bodies. A large body that must wait is not
/// read meanwhile, so that its client cannot send more. Room is taken for the bytes that have arrived, rounded up: a client can announce any size, and send nothing.
final class BodyReader: Sendable {
    enum Result: Sendable {
        case body([UInt8])
        /// The body is over the limit; the rest is not kept.
        case tooLarge
        /// Too many large bodies wait.
        case busy
    }

    /// Allowance of each request in bytes, outside of the room: over 20 subscriptions.
    private static let freeByteCount = 16 << 10
    /// The room that a body over ``freeByteCount`` gets at first, if it is not smaller. All subscriptions of a request fit, also in an onion request.
    private static let firstByteCount = SessionProtocol.RequestBody.maximumByteCount + 4096

    private let room: Mutex<BodyRoom<CheckedContinuation<Bool, Never>>>

    /// - Parameter byteCount: limit of all large bodies together, in bytes.
    init(byteCount: Int) {
        room = Mutex(BodyRoom(byteCount: byteCount, limits: .init(freeFactor: 7)))
    }

    /// Passes the body to `use`, and releases its room when `use` returns.
    ///
    /// - Parameters:
    ///   - request: a request whose body has not been read.
    ///   - limit: maximum size of the body in bytes.
    /// - Throws: an error of the connection.
    func read<Answer>(
        _ request: Request, from network: SenderNetwork, upTo limit: Int, _ use: (Result) async throws -> Answer
    ) async throws -> Answer {
        let announced = request.headers[.contentLength].flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
        // Answers before the body is sent, for clients that wait for 100 Continue.
        if let announced, announced > limit { return try await use(.tooLarge) }
        var taken = 0
        defer { if taken > 0 { release(taken, of: network) } }
        var bytes: [UInt8] = []
        for try await chunk in request.body {
            let count = bytes.count + chunk.readableBytes
            guard count <= limit else { return try await use(.tooLarge) }
            if count > max(taken, Self.freeByteCount) {
                let larger = max(count, min(max(2 * count, Self.firstByteCount), announced ?? limit))
                let hasRoom = await taken == 0 ? take(larger, of: network) : room.withLock { $0.grow(by: larger - taken, of: network) }
                guard hasRoom else { return try await use(.busy) }
                taken = larger
                bytes.reserveCapacity(larger)
            }
            bytes += chunk.readableBytesView
        }
        return try await use(.body(bytes))
    }

    /// Waits for room. Every body ends: that of a slow client with its connection.
    private func take(_ count: Int, of network: SenderNetwork) async -> Bool {
        await withCheckedContinuation { continuation in
            switch room.withLock({ $0.take(count, of: network, continuation) }) {
            case .held: continuation.resume(returning: true)
            case .waiting: break
            case .refused: continuation.resume(returning: false)
            }
        }
    }

    private func release(_ count: Int, of network: SenderNetwork) {
        for waiting in room.withLock({ $0.release(count, of: network) }) { waiting.resume(returning: true) }
    }
}
