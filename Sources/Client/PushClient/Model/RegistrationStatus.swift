public import StatusProtocol
public import WakuCrypto

/// The state of the registration with one server.
public enum RegistrationStatus: Hashable, Sendable {
    case registered(version: UInt64)
    /// Not answered yet; retried automatically.
    case pending(tries: Int)
    case refused(RegistrationRefusal)
    case unregistered
}

extension RegistrationStatus: CustomStringConvertible {
    /// A phrase: the state and its details.
    public var description: String {
        switch self {
        case .registered(let version): "registered, version \(version)"
        case .pending(let tries): "not answered yet, after \(tries) tries"
        case .refused(let refusal): "refused: \(refusal.rawValue)"
        case .unregistered: "unregistered"
        }
    }
}

/// A registrant's device at one server.
public struct KnownDevice: Hashable, Sendable {
    /// The device. Unique only among the registrant's devices.
    public let installationID: InstallationID
    /// A server that the device is registered with. A device at several servers is listed once for each.
    public let server: PublicKey
    /// The version of the registration, as advertised or answered; 0 in version 0.1 of the protocol.
    public let version: UInt64
    /// Whether this client has the device's access token; false when the owner gave it to other clients only.
    public let isTokenKnown: Bool
}
