public import Waku

/// A registration that is in force, as the store has it.
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

/// What is stored for a registrant's installation.
public enum StoredState: Hashable, Sendable {
    case registered(StoredRegistration)
    /// Unregistered: only the version stays, so that older messages are not taken for news.
    case tombstone(version: UInt64)

    /// What is in force; nil for a tombstone.
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
