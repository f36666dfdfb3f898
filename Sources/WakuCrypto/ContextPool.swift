import Synchronization

/// Keeps libcrypto's contexts for the next one who needs one: making them costs more than what most calls do with them.
///
/// A context has one user at a time, and goes back when the body ends, without the secrets that it worked with.
final class ContextPool: Sendable {
    private let make: @Sendable () -> OpaquePointer?
    private let wipe: @Sendable (OpaquePointer) -> Void
    /// At most as many as there were users at once; they live as long as the process.
    private let idle = Mutex<[Handle]>([])

    /// A context moves from one thread to another through the mutex, and is used by one only.
    private struct Handle: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    /// - Parameter wipe: makes a context forget its key.
    init(_ make: @escaping @Sendable () -> OpaquePointer?, wipe: @escaping @Sendable (OpaquePointer) -> Void) {
        self.make = make
        self.wipe = wipe
    }

    func withContext<R, E: Error>(_ body: (OpaquePointer) throws(E) -> R) throws(E) -> R {
        let handle = idle.withLock { $0.popLast() } ?? makeHandle()
        defer {
            wipe(handle.pointer)
            idle.withLock { $0.append(handle) }
        }
        return try body(handle.pointer)
    }

    private func makeHandle() -> Handle {
        guard let pointer = make() else { preconditionFailure("libcrypto has no memory for a context") }
        return Handle(pointer: pointer)
    }
}
