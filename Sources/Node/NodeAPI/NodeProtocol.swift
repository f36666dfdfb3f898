package import Delivery
package import NodeMetrics
package import Storage

/// A protocol that a node speaks: its topics, tables, metrics, delivery source, and the service that handles its messages. Listed only in the
/// composition root.
package protocol NodeProtocol: Sendable {
    /// The name shown in `admin status` and on the status page.
    var name: String { get }
    /// The number that identifies the protocol in stored rows.
    var number: ProtocolNumber { get }
    /// In metrics.
    var label: ProtocolLabel { get }
    var part: StorePart { get }
    var metrics: [MetricGroup] { get }
    /// Those of its counters that count lost messages: the status page lists them.
    var losses: [Counter] { get }
    /// The Waku topics that it listens on; none by default. Other endpoints are its service's: ``ProtocolService/run()``.
    var topics: any WakuTopics { get }

    /// What names a registrant in its rows, where all nodes of a cluster must know of registrants at once: see
    /// ``ProtocolService/registeredElsewhere(_:)``. nil by default.
    var registrants: (table: Table, column: Column)? { get }

    /// Makes the source through which delivery reads the protocol's devices and payloads.
    func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource

    /// Makes the service. Nothing runs yet; reading the store may block.
    ///
    /// - Throws: `StoreError`
    func makeService(_ node: NodeServices) throws -> any ProtocolService
}

extension NodeProtocol {
    package var label: ProtocolLabel { .other }
    package var metrics: [MetricGroup] { [] }
    package var losses: [Counter] { [] }
    package var topics: any WakuTopics { NoTopics() }
    package var registrants: (table: Table, column: Column)? { nil }
}
