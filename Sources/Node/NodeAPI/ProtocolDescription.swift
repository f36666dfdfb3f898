import Core
public import Delivery
public import NodeMetrics
public import Storage
public import WakuCrypto

/// A protocol that the program knows, whether or not a node speaks it: its tables, metrics and stored rows, for commands without a running node.
/// Each protocol declares its own as a static member in an extension; the composition root lists them.
public struct ProtocolDescription: Sendable {
    /// The operators' name, as in ``NodeProtocol/name``.
    package let name: String
    /// The number that identifies the protocol in stored rows.
    public let number: ProtocolNumber
    package let part: StorePart
    package let metrics: [MetricGroup]
    /// Whether the protocol prescribes texts and data of notifications, so that operators can't style them.
    package let prescribesContent: Bool
    /// Makes the source of the protocol's devices and payloads, without options of a running node.
    package let makeDeliverySource: @Sendable (Sealer) -> any DeliverySource
    /// Counts the protocol's stored rows for `admin status`; empty if there are none to show.
    package let storedCounts: @Sendable (any Store) throws(StoreError) -> [StoredCount]
    /// Makes the protocol for a node; nil for those that the options of waku-push configure.
    package let makeProtocol: (@Sendable (ProtocolContext) throws -> any NodeProtocol)?

    public init(
        name: String, number: ProtocolNumber, part: StorePart, metrics: [MetricGroup] = [], prescribesContent: Bool = false,
        makeDeliverySource: @escaping @Sendable (Sealer) -> any DeliverySource,
        storedCounts: @escaping @Sendable (any Store) throws(StoreError) -> [StoredCount] = { (_) throws(StoreError) in [] },
        makeProtocol: (@Sendable (ProtocolContext) throws -> any NodeProtocol)? = nil
    ) {
        self.name = name
        self.number = number
        self.part = part
        self.metrics = metrics
        self.prescribesContent = prescribesContent
        self.makeDeliverySource = makeDeliverySource
        self.storedCounts = storedCounts
        self.makeProtocol = makeProtocol
    }
}

/// The settings of a node from which a protocol is made.
public struct ProtocolContext: Sendable {
    /// The node's keys; the first is its identity.
    public let identities: [PrivateKey]
    /// The age from which messages are dropped.
    public let maximumMessageAge: Duration

    package init(identities: [PrivateKey], maximumMessageAge: Duration) {
        self.identities = identities
        self.maximumMessageAge = maximumMessageAge
    }
}

/// A number of stored rows, as `admin status` shows it.
public struct StoredCount: Sendable {
    /// The key in JSON.
    package let key: String
    /// The name in text; nil: only in JSON.
    package let name: String?
    package let count: Int

    package init(key: String, name: String?, count: Int) {
        self.key = key
        self.name = name
        self.count = count
    }
}
