import Synchronization
import Waku
import WakuCrypto

/// Messages on contact code topics, which are read in a task of their own: anyone can publish there, and the first message on each topic costs the
/// derivation of its key. Answers, on other topics, do not wait for it.
final class AdvertisementQueue: Sendable {
    typealias Element = (message: WakuMessage, owner: PublicKey)

    /// Limit of the waiting messages in bytes. Beyond it messages are dropped: an advertisement is found by the next look-up or repetition.
    static let byteLimit = 4 << 20
    /// Of a message besides its payload.
    private static let overhead = 512

    private let stream: AsyncStream<Element>
    private let continuation: AsyncStream<Element>.Continuation
    private let byteCount = Mutex(0)

    init() {
        (stream, continuation) = AsyncStream.makeStream(of: Element.self)
    }

    /// - Parameter owner: The registrant of the message's topic.
    func add(_ message: WakuMessage, of owner: PublicKey) {
        let size = message.payload.count + Self.overhead
        let hasRoom = byteCount.withLock { count in
            guard count + size <= Self.byteLimit else { return false }
            count += size
            return true
        }
        if hasRoom { continuation.yield((message, owner)) }
    }

    /// Passes on the messages in their order, until cancelled.
    func run(_ read: (WakuMessage, PublicKey) -> Void) async {
        for await (message, owner) in stream {
            // A cancelled stream still passes its waiting messages on, which may take a minute.
            guard !Task.isCancelled else { return }
            read(message, owner)
            byteCount.withLock { $0 -= message.payload.count + Self.overhead }
        }
    }
}
