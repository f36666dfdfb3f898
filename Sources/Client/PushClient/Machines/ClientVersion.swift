import Core
import StatusProtocol
import WakuCrypto

/// The differences between the versions of the protocol.
protocol ClientVersion: Sendable {
    associatedtype Own: OwnState
    associatedtype Server: RegistrationState
    associatedtype Registrations: RegistrationStates where Registrations.Version == Self
    associatedtype Registration: RegistrationMessage
    associatedtype RegistrationResponse: Sendable
    /// The way of a query to the servers.
    associatedtype QueryRoute: Hashable, Sendable
    associatedtype Advertisement: Hashable, Sendable

    /// Begins the names of the records in the store.
    static var recordPrefix: String { get }
    /// Whether a registrant is queried only once per message after a server refused a token, instead of once per round.
    static var queriesOnceAfterRefusal: Bool { get }
    /// Whether a client that receives follows the advertisements of the account's other devices.
    static var watchesOwnDevices: Bool { get }

    /// The servers to query about a registrant.
    ///
    /// - Parameter others: Servers that the application named besides the known ones, or of an earlier query.
    static func servers(about registrant: PublicKey, also others: [PublicKey], _ machine: PushClientMachine<Self>) -> Set<PublicKey>
    static func route(to servers: Set<PublicKey>, _ machine: PushClientMachine<Self>) -> QueryRoute
    static func advertisement(of machine: PushClientMachine<Self>, at now: Timestamp) -> Advertisement
    static func rowCount(of advertisement: Advertisement) -> Int
}

protocol RegistrationMessage: Hashable, Sendable {
    /// The answer names it.
    var requestID: [UInt8] { get }
}

/// The client's own settings.
protocol OwnState: Codable, Hashable, Sendable {
    var installationID: InstallationID { get }
    var isReceiving: Bool { get }
    var isSending: Bool { get set }
    /// The servers of the last `register`.
    var serverKeys: [PublicKey] { get }
    /// The latest time of the next advertisement.
    var advertisesAt: Timestamp? { get set }
    /// The client's time when this was written. It never goes back, even if the system clock does.
    var time: Timestamp { get set }
    /// ``SteadyClock/lead`` in nanoseconds; nil stands for 0.
    var lead: Int64? { get set }
}

extension OwnState {
    var steadyLead: Duration { .nanoseconds(lead ?? 0) }
}
