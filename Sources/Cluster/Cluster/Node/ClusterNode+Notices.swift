import Delivery
import Storage

/// Notifications between nodes through the database (`LISTEN` and `NOTIFY`). They only save time: the changes are also found by periodic reads.
extension ClusterNode {
    static let outboxChannel = "outbox"
    static let acceptedChannel = "accepted"
    static let registrantPrefix = "registrant_"

    /// - Parameter registrants: see ``NodeProtocol/registrants``.
    static func notices(_ registrants: [ProtocolNumber: (table: Table, column: Column)]) -> [Notice] {
        [
            Notice(channel: outboxChannel, table: DeliveryStorage.outboxTable, column: DeliveryStorage.deviceColumn),
            Notice(channel: acceptedChannel, table: DeliveryStorage.acceptedTable, column: DeliveryStorage.deliveryColumn),
        ]
            + registrants.sorted { $0.key.rawValue < $1.key.rawValue }.map { number, place in
                Notice(
                    channel: registrantPrefix + "\(number.rawValue)", table: place.table, column: place.column, includesUpdates: true,
                    isLogged: true)
            }
    }
}
