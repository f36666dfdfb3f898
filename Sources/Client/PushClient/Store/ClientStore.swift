import Synchronization

/// Persistent state of a client: a value for each name.
///
/// A commit survives a kill of the process at any moment, and is applied as a whole or not at all. A store belongs to one client: opening one
/// that is in use throws a `ClientStoreError` with `locked`.
public protocol ClientStore: Sendable {
    /// All committed values.
    func load() async throws(ClientStoreError) -> [String: [UInt8]]

    /// Stores these values; nil removes the name.
    func commit(_ changes: [String: [UInt8]?]) async throws(ClientStoreError)
}

/// Why a client's state can't be used, or was not stored. The message states the problem and its remedy.
public struct ClientStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failures, by what the application can do about them.
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

    /// Distinguishes failures in code; ``message`` is for people.
    public let code: Code
    /// The problem and its remedy in English, without secrets.
    public let message: String

    /// For implementations of ``ClientStore``.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// Same as ``message``.
    public var description: String { message }
}

/// Keeps state until the process ends, for tests and for applications that persist it themselves.
public final class MemoryClientStore: ClientStore {
    private let values: Mutex<[String: [UInt8]]>

    /// - Parameter values: The result of an earlier ``load()``; empty for a new client.
    public init(_ values: [String: [UInt8]] = [:]) {
        self.values = Mutex(values)
    }

    /// All committed values, for the application to persist. Never throws.
    public func load() async throws(ClientStoreError) -> [String: [UInt8]] {
        values.withLock { $0 }
    }

    /// Applies all changes under one lock. Never throws.
    public func commit(_ changes: [String: [UInt8]?]) async throws(ClientStoreError) {
        values.withLock { values in
            for (name, value) in changes { values[name] = value }
        }
    }
}
