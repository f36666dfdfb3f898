import COpenSSL
import Foundation

/// Keeps a libcrypto context for each thread: creating one costs more than most calls with it, and so does a lock under contention.
///
/// After a body the context is wiped of secrets. A thread's contexts are freed when it ends. A body must not use the same pool again: it would get
/// the same context.
final class ThreadContexts: Sendable {
    private let make: @Sendable () -> OpaquePointer?
    private let wipe: @Sendable (OpaquePointer) -> Void
    private let slot: pthread_key_t

    /// - Parameters:
    ///   - wipe: removes the key from a context.
    ///   - free: frees the context when its thread ends.
    init(
        _ make: @escaping @Sendable () -> OpaquePointer?, wipe: @escaping @Sendable (OpaquePointer) -> Void,
        free: @escaping @convention(c) (UnsafeMutableRawPointer?) -> Void
    ) {
        self.make = make
        self.wipe = wipe
        var slot = pthread_key_t()
        precondition(pthread_key_create(&slot, free) == 0, "the system has no room for another thread-specific value")
        self.slot = slot
    }

    func withContext<R, E: Error>(_ body: (OpaquePointer) throws(E) -> R) throws(E) -> R {
        let context = pthread_getspecific(slot).map(OpaquePointer.init) ?? makeContext()
        defer { wipe(context) }
        return try body(context)
    }

    private func makeContext() -> OpaquePointer {
        guard let context = make() else { preconditionFailure("libcrypto has no memory for a context") }
        pthread_setspecific(slot, UnsafeRawPointer(context))
        return context
    }
}

extension ThreadContexts {
    static func ciphers() -> ThreadContexts {
        ThreadContexts(
            { EVP_CIPHER_CTX_new() }, wipe: { require(EVP_CIPHER_CTX_reset($0)) }, free: { EVP_CIPHER_CTX_free(OpaquePointer($0)) })
    }

    /// For data that is not secret: digests are not wiped.
    static func digests() -> ThreadContexts {
        ThreadContexts({ EVP_MD_CTX_new() }, wipe: { _ in }, free: { EVP_MD_CTX_free(OpaquePointer($0)) })
    }
}
