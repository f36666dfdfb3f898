import Core
public import Delivery
public import NodeMetrics
package import RateLimits
public import Storage
public import Waku
public import WakuCrypto

/// A protocol that the program knows, whether or not a node speaks it: its tables, options, limits, metrics and stored rows, for commands without a
/// running node. Each protocol declares its own as a static member in an extension; the composition root lists them.
public struct ProtocolDescription: Sendable {
    /// The operators' name, as in ``NodeProtocol/name``.
    package let name: String
    /// The number that identifies the protocol in stored rows.
    public let number: ProtocolNumber
    package let part: StorePart
    package let metrics: [MetricGroup]
    /// Whether the protocol prescribes texts and data of notifications, so that operators can't style them.
    package let prescribesContent: Bool
    /// The options of `serve`; those of Status, version 0.1 and Session are options of waku-push itself.
    package let options: [any ProtocolOptionDeclaration]
    /// The devices that operators see with `admin registrations`; nil for protocols with tables of another form.
    package let registrations: (any OperatedRegistrations)?
    /// Topics of registrations for `admin topics`, besides ``NodeProtocol/topics``; nil if there are none.
    package let learnedTopics: (@Sendable () -> StoreCommand<[ContentTopic]>)?
    /// Makes the source of the protocol's devices and payloads, without options of a running node.
    package let makeDeliverySource: @Sendable (Sealer) -> any DeliverySource
    /// Counts the protocol's stored rows for `admin status`; empty if there are none to show.
    package let storedCounts: @Sendable (any Store) throws(StoreError) -> [StoredCount]
    /// Makes the protocol for a node; nil for those that the options of waku-push configure.
    package let makeProtocol: (@Sendable (ProtocolContext) throws -> any NodeProtocol)?

    /// A protocol with tables of its own form.
    public init(
        name: String, number: ProtocolNumber, part: StorePart, metrics: [MetricGroup] = [], prescribesContent: Bool = false,
        options: [any ProtocolOptionDeclaration] = [],
        makeDeliverySource: @escaping @Sendable (Sealer) -> any DeliverySource,
        storedCounts: @escaping @Sendable (any Store) throws(StoreError) -> [StoredCount] = { (_) throws(StoreError) in [] },
        makeProtocol: (@Sendable (ProtocolContext) throws -> any NodeProtocol)? = nil
    ) {
        self.name = name
        self.number = number
        self.part = part
        self.metrics = metrics
        self.prescribesContent = prescribesContent
        self.options = options
        registrations = nil
        learnedTopics = nil
        self.makeDeliverySource = makeDeliverySource
        self.storedCounts = storedCounts
        self.makeProtocol = makeProtocol
    }

    /// A protocol whose devices are in a ``RegistrationTable``. The node applies limits to them and counts them, and operators list, show, end, export
    /// and import them. The protocol itself removes those that have ended: `ProtocolService.expire(at:)`.
    ///
    /// - Parameters:
    ///   - name: for operators; the label of its metrics, and the name of its tables in the schema.
    ///   - registrations: the devices.
    ///   - tables: other tables, whose rows the registrations declare.
    ///   - metrics: further metrics.
    ///   - options: options of `serve`, including limits.
    ///   - learnedTopics: the topics of registrations, if the protocol learns some.
    ///   - migrations: the changes of its tables since its first release; by default there is one, which creates them.
    ///   - makeProtocol: makes the protocol for a node.
    public init<Device>(
        name: String, registrations: RegistrationTable<Device>, tables: [Table] = [], metrics: [MetricGroup] = [],
        options: [any ProtocolOptionDeclaration] = [], learnedTopics: (@Sendable () -> StoreCommand<[ContentTopic]>)? = nil,
        migrations: [StorePart.Migration]? = nil,
        makeProtocol: @escaping @Sendable (ProtocolContext) throws -> any NodeProtocol
    ) {
        self.name = name
        number = registrations.number
        part = StorePart(name, tables: [registrations.table] + tables, migrations: migrations)
        self.metrics = metrics
        prescribesContent = false
        self.options = options
        self.registrations = registrations
        self.learnedTopics = learnedTopics
        makeDeliverySource = { registrations.deliverySource($0) }
        storedCounts = { (store) throws(StoreError) in try registrations.storedCounts(in: store, of: name) }
        self.makeProtocol = makeProtocol
    }

    /// The limits of its devices with these values of options; nil for a protocol that applies its own.
    ///
    /// - Parameters:
    ///   - limits: those of `--limit`, `--allow-keys` and `--deny-keys`.
    ///   - options: the texts of options by name.
    package func limits(_ limits: Limits, options texts: [String: String]) throws(Limits.Problem) -> Limits? {
        guard registrations != nil else { return nil }
        var limits = limits
        try limits.apply(options, texts)
        return limits
    }

    /// The label of its metrics if it is one of another package.
    var label: ProtocolLabel { registrations == nil ? .other : ProtocolLabel(name) }
}

/// The settings of a node from which a protocol is made.
public struct ProtocolContext: Sendable {
    /// The node's keys; the first is its identity.
    public let identities: [PrivateKey]
    /// The age from which messages are dropped.
    public let maximumMessageAge: Duration
    /// The values of the protocol's options.
    public let options: ProtocolOptionValues

    package init(identities: [PrivateKey], maximumMessageAge: Duration, options: ProtocolOptionValues) {
        self.identities = identities
        self.maximumMessageAge = maximumMessageAge
        self.options = options
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
