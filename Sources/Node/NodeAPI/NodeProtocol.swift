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
    /// The label of its metrics.
    var label: ProtocolLabel { get }
    var part: StorePart { get }
    var metrics: [MetricGroup] { get }
    /// The counters of lost messages, which the status page lists.
    var losses: [Counter] { get }
    /// The Waku topics it listens on; none by default. ``ProtocolService/run()`` serves other endpoints.
    var topics: any WakuTopics { get }

    /// The column that identifies a registrant, if all nodes of a cluster must learn of changed registrants at once: see
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
