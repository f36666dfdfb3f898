public import Delivery
public import NodeMetrics
public import Storage

/// A protocol that a node speaks: its topics, and the service that handles its messages. Its tables and metrics are those of its description.
public protocol NodeProtocol: Sendable {
    /// The part that commands use without a running node.
    static var description: ProtocolDescription { get }
    /// The label of its metrics: by default the name of a protocol with a ``RegistrationTable``, `other` for others.
    var label: ProtocolLabel { get }
    /// The counters of lost messages, which the status page lists.
    var losses: [Counter] { get }
    /// The Waku topics it listens on; none by default. ``ProtocolService/run()`` serves other endpoints.
    var topics: any WakuTopics { get }

    /// The column that identifies a registrant, if all nodes of a cluster must learn of changed registrants at once: see
    /// ``ProtocolService/registeredElsewhere(_:)``. By default that of the ``RegistrationTable``; nil without one.
    var registrants: (table: Table, column: Column)? { get }

    /// Makes the source through which delivery reads the protocol's devices and payloads. By default that of the description.
    func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource

    /// Makes the service. Nothing runs yet; reading the store may block.
    ///
    /// - Throws: `StoreError`
    func makeService(_ node: NodeServices) throws -> any ProtocolService
}

extension NodeProtocol {
    /// See `ProtocolDescription.name`.
    public var name: String { Self.description.name }
    /// See ``ProtocolDescription/number``.
    public var number: ProtocolNumber { Self.description.number }
    /// See `ProtocolDescription.part`.
    public var part: StorePart { Self.description.part }
    /// See `ProtocolDescription.metrics`.
    public var metrics: [MetricGroup] { Self.description.metrics }
    package var registrations: (any OperatedRegistrations)? { Self.description.registrations }
    public func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource { Self.description.makeDeliverySource(sealer) }
    public var label: ProtocolLabel { Self.description.label }
    public var losses: [Counter] { [] }
    public var topics: any WakuTopics { NoTopics() }
    public var registrants: (table: Table, column: Column)? { Self.description.registrations.map { ($0.table, $0.owner) } }
}
