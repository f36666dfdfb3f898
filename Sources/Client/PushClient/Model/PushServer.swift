public import WakuCrypto

/// A push server for a client to register with. The client also accepts its answers about other registrants.
public struct PushServer: Hashable, Sendable {
    /// The topics a server listens on.
    public enum Dialect: String, Hashable, Sendable, Codable, CaseIterable {
        /// Like status-go: registrations on the personal topic, queries on hex(key hash).
        case deployed
        /// Like the specification: registrations on the partitioned topic, queries on `0x` + hex(key hash).
        case published
    }

    /// Identifies the server: requests are encrypted to it, and answers must be signed by it.
    public let key: PublicKey
    /// nil when unknown: registrations go to the personal topic, queries to both forms.
    public let dialect: Dialect?

    /// The server's VAPID public key in base64url, if the application knows that the server supports Web Push; nil otherwise. Web Push subscriptions
    /// are not sent to other servers: those would accept them and learn their secrets, but could not notify.
    public let vapidKey: String?

    /// A server by its key, and what the application knows about it.
    public init(key: PublicKey, dialect: Dialect? = nil, vapidKey: String? = nil) {
        self.key = key
        self.dialect = dialect
        self.vapidKey = vapidKey
    }

    /// How many servers are chosen from a default list.
    public static let defaultCount = 3

    /// The servers to register with when the user chose none: all of a list of up to three, else three at random.
    public static func choose(from list: [PushServer], using generator: inout some RandomNumberGenerator) -> [PushServer] {
        list.count <= defaultCount ? list : Array(list.shuffled(using: &generator).prefix(defaultCount))
    }
}
