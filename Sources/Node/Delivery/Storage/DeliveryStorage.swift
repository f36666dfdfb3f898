package import Core
package import Storage

/// The tables of delivery: waiting notifications, accepted ones, and tokens in doubt. Devices and payloads are opaque: see ``DeliverySource``.
public enum DeliveryStorage {
    static let protocolNumber = Column("protocol", .integer)
    static let device = Column("device", .integer)
    static let delivery = Column("delivery", .bytes)
    static let expiresAt = Column("expires_at", .integer)
    static let sealed = Column("sealed", .bytes)
    static let at = Column("at", .integer)
    static let version = Column("version", .integer)
    /// When a single node first marked the row as possibly posted; null if it did not. Nodes that share the outbox use `cluster_mark`.
    static let markedAt = Column("marked_at", .integer, isOptional: true)

    /// Notifications that the node accepted and that gorush has not accepted yet.
    static let outbox = outbox(with: [markedAt])

    private static func outbox(with added: [Column]) -> Table {
        Table(
            "outbox", columns: [delivery, device, expiresAt, sealed, protocolNumber] + added, unique: [delivery],
            indexes: [Index("outbox_device", on: [protocolNumber, device])], neverReusesIDs: true,
            sealed: SealedColumn(sealed, boundTo: [delivery], label: "notifications"))
    }

    /// Deliveries that gorush accepted, in the order of time. Device and version identify the posted token, for failures that gorush reports later;
    /// rows from before version 2 of the schema lack them.
    static let accepted = Table(
        "accepted",
        columns: [
            delivery, at, optional(device), optional(version), postedAs, hasFailed, optional(protocolNumber),
        ], unique: [delivery], indexes: [Index("accepted_posted_as", on: [postedAs], where: .present(postedAs))])
    /// The delivery id under which it was posted; null: its own.
    static let postedAs = Column("posted_as", .bytes, isOptional: true)
    /// 1 once a failure was counted against the token.
    static let hasFailed = Column("has_failed", .integer, isOptional: true)

    /// The ``TokenDoubt`` of each device in doubt.
    static let doubt = Table(
        "doubt", columns: [protocolNumber, device, version, failures, firstFailure, lastFailure, unfailedSince],
        unique: [protocolNumber, device])
    static let failures = Column("failures", .integer)
    static let firstFailure = Column("first_failure", .integer)
    static let lastFailure = Column("last_failure", .integer)
    static let unfailedSince = Column("unfailed_since", .integer, isOptional: true)

    package static let part = StorePart(
        "delivery", tables: [outbox, accepted, doubt],
        migrations: [
            [.create(outbox(with: [])), .create(accepted), .create(doubt)],
            [.addColumn(markedAt, to: outbox)],
        ])

    private static func optional(_ column: Column) -> Column { Column(column.name, column.kind, isOptional: true) }

    // MARK: For other nodes

    package static let outboxTable = outbox
    package static let acceptedTable = accepted
    package static let deviceColumn = device
    package static let deliveryColumn = delivery
    package static let markedAtColumn = markedAt
    /// The columns of a ``WaitingDelivery``.
    package static let waitingColumns = [.id, protocolNumber, device, expiresAt, delivery]

    // MARK: Pruning

    /// Doubts whose last failure is more than 90 days before the cutoff are deleted; a device notified less often starts without a doubt.
    private static let doubtMemory = Duration.seconds(90 * 24 * 3600)

    private static let acceptedRows = TimedRows(accepted, by: at)

    /// Deletes accepted deliveries from before `cutoff`, and the oldest beyond `limit` from before `fresh`; and old doubts.
    package static func prune(
        _ store: any Store, before cutoff: Timestamp, at now: Timestamp, keeping limit: Int,
        since fresh: Timestamp = Timestamp(rawValue: .max)
    ) async throws(StoreError) {
        try await store.prune(acceptedRows, before: cutoff, at: now, keeping: limit, since: fresh)
        try await store.commit(.change([removeOldDoubts(.integer((cutoff - doubtMemory).rawValue))]))
    }
}
