public import Core
import Waku

/// A stored registration that is not a tombstone.
public struct StoredRegistration: Hashable, Sendable {
    public let key: RegistrationKey
    public let registration: PushNotificationRegistration
    /// When it was stored.
    public let storedAt: Timestamp

    public var version: UInt64 { registration.version }

    public init(key: RegistrationKey, registration: PushNotificationRegistration, storedAt: Timestamp) {
        self.key = key
        self.registration = registration
        self.storedAt = storedAt
    }
}

/// The stored state of an installation.
public enum StoredState: Hashable, Sendable {
    case registered(StoredRegistration)
    /// Unregistered: only the version is kept, so that older messages are recognised.
    case tombstone(version: UInt64)

    /// The registration; nil for a tombstone.
    public var registration: PushNotificationRegistration? {
        switch self {
        case .registered(let stored): stored.registration
        case .tombstone: nil
        }
    }

    public var version: UInt64 {
        switch self {
        case .registered(let stored): stored.version
        case .tombstone(let version): version
        }
    }
}
