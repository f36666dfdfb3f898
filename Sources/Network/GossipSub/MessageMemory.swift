import Synchronization

/// The memory of the messages of one router, in bytes: each counts once, however many queues it waits in, until the last of them released it.
final class MessageMemory: Sendable {
    /// The memory of a message besides its encoded field: the object, the header of its bytes, and its places in queues.
    static let overhead = 160

    private let held = Atomic(0)

    var byteCount: Int { held.load(ordering: .relaxed) }

    func add(_ message: GossipMessage) {
        held.wrappingAdd(message.byteCount + Self.overhead, ordering: .relaxed)
    }

    func remove(_ message: GossipMessage) {
        held.wrappingSubtract(message.byteCount + Self.overhead, ordering: .relaxed)
    }
}
