import Synchronization

/// Persistent state of a client: a value for each name.
///
/// A commit survives a kill of the process at any moment, and is applied as a whole or not at all. A store belongs to one client: opening one
/// that is in use throws a `ClientStoreError` with `locked`.
public protocol ClientStore: Sendable {
    /// All committed values.
    /// - Throws: ``ClientStoreError``
    func load() async throws(ClientStoreError) -> [String: [UInt8]]

    /// Stores these values; nil removes the name.
    /// - Throws: ``ClientStoreError``
    func commit(_ changes: [String: [UInt8]?]) async throws(ClientStoreError)
}

/// Why a client's state can't be used, or was not stored. The message states the problem and its remedy.
public struct ClientStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// Another client uses it.
        case locked
        /// Access denied, or other users may read it.
        case permission
        /// Written by a later version of this library.
        case newer
        /// Belongs to another identity.
        case otherIdentity
        /// Not a client's state, or damaged.
        case damaged
        /// Temporary failure: disk full, I/O error.
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

/// Keeps state until the process ends, for tests and for applications that persist it themselves.
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
