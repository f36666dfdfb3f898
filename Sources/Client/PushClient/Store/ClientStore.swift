import Synchronization

/// Where a client remembers what it must not forget: a value for each name.
///
/// What is committed is there after the process was killed at any moment; a commit is kept as a whole or not at all. A store belongs to one
/// client: whoever opens one that is in use gets a `ClientStoreError` with `locked`.
public protocol ClientStore: Sendable {
    /// Everything that was committed.
    /// - Throws: ``ClientStoreError``
    func load() async throws(ClientStoreError) -> [String: [UInt8]]

    /// Keeps these values; nil removes the name.
    /// - Throws: ``ClientStoreError``
    func commit(_ changes: [String: [UInt8]?]) async throws(ClientStoreError)
}

/// Why a client's state can't be used, or was not kept. The message says what is wrong and how to mend it.
public struct ClientStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// Another client uses it.
        case locked
        /// Not allowed to use it, or others may read it.
        case permission
        /// Made by a later version of this library.
        case newer
        /// Of another identity.
        case otherIdentity
        /// Not a client's state, or a damaged one.
        case damaged
        /// Did not work now: disk full, I/O error. May work later.
        case unavailable
    }

    public let code: Code
    public let message: String

    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}

/// Remembers until the process ends, for tests and for whoever keeps state otherwise.
public final class MemoryClientStore: ClientStore {
    private let values: Mutex<[String: [UInt8]]>

    public init(_ values: [String: [UInt8]] = [:]) {
        self.values = Mutex(values)
    }

    public func load() async throws(ClientStoreError) -> [String: [UInt8]] {
        values.withLock { $0 }
    }

    public func commit(_ changes: [String: [UInt8]?]) async throws(ClientStoreError) {
        values.withLock { values in
            for (name, value) in changes { values[name] = value }
        }
    }
}
