/// The known progress of a publication.
public enum Publication: Hashable, Sendable {
    /// At least one peer received it.
    case confirmed
    /// A node accepted it, but does not report whether any peer received it. If `canBeLookedUp`, ``RelayTransport/lookUp(_:)`` may show that.
    case unconfirmed(canBeLookedUp: Bool)

    /// The maximum number of messages in one look-up. It is the page size of stores, and such a query fits into the HTTP headers that nodes accept.
    public static let lookUpLimit = 100
}

/// A publication, and the relays that accepted it.
public struct PlacedPublication: Hashable, Sendable {
    /// The known progress.
    public let publication: Publication
    /// Indices of the relays in the operator's order; 0 for a single one.
    public let places: Set<Int>
    /// Whether another relay's store can confirm the publication independently.
    public let canBeChecked: Bool

    /// Creates a publication by the relays at these places.
    public init(_ publication: Publication, places: Set<Int>, canBeChecked: Bool = false) {
        self.publication = publication
        self.places = places
        self.canBeChecked = canBeChecked
    }
}

/// The result of looking messages up in the stores of several relays.
public struct StoreFindings: Hashable, Sendable {
    /// The messages found, by index of the relay. Relays whose store did not answer are absent.
    public var found: [Int: Set<MessageHash>]
    /// Indices of relays whose store did not answer, but may later.
    public var unavailable: Set<Int>
    /// The number of all relays, including those whose store was not queried.
    public var relayCount: Int

    /// The defaults describe a single relay, the store of which answered.
    public init(found: [Int: Set<MessageHash>], unavailable: Set<Int> = [], relayCount: Int = 1) {
        self.found = found
        self.unavailable = unavailable
        self.relayCount = relayCount
    }
}
