public import Core

/// A stored registration that is not a tombstone.
public struct StoredRegistration: Hashable, Sendable {
    /// Identifies the registration.
    public let key: RegistrationKey
    /// The fields that this version knows. Stores keep the received bytes as well.
    public let registration: PushNotificationRegistration
    /// When it was stored.
    public let storedAt: Timestamp

    /// The version of the registration: a new one must be higher.
    public var version: UInt64 { registration.version }

    /// - Parameters:
    ///   - key: Identifies the registration.
    ///   - registration: Accepted by a server, so it has a platform and a device token.
    ///   - storedAt: The wall-clock time at which it was stored.
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

    /// The version that a new registration must exceed.
    public var version: UInt64 {
        switch self {
        case .registered(let stored): stored.version
        case .tombstone(let version): version
        }
    }
}
