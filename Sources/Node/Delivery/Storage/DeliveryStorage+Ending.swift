package import Core
package import Storage
import Waku

/// How notifications leave the outbox without gorush having taken them.
extension DeliveryStorage {
    private static let findDeliveries = Query(outbox, [protocolNumber, delivery], where: [.idAmong])
    private static let removeID = Mutation(outbox, .delete(where: [.equal(.id)]))

    /// Given up: expired, evicted, or refused by gorush.
    ///
    /// - Parameters:
    ///   - ids: of rows, which may be gone already.
    ///   - sources: protocols may remember such deliveries.
    ///   - now: when.
    package static func drop(_ ids: [Int64], of sources: DeliverySources, at now: Timestamp) -> StoreCommand<Void> {
        .find(findDeliveries(ids: ids)) { rows in
            // A damaged row goes as well.
            let known = rows.compactMap { row -> (number: ProtocolNumber, delivery: DeliveryID)? in
                guard let number = try? row.integer(0), let delivery = delivery(in: row) else { return nil }
                return (ProtocolNumber(rawValue: number), delivery)
            }
            return .change(ids.map { removeID(.integer($0)) } + sources.noteGivenUp(known, at: now))
        }
    }

    /// The second column; nil when it is damaged.
    private static func delivery(in row: Row) -> DeliveryID? { (try? row.bytes(1)).flatMap { DeliveryID(bytes: $0) } }

    private static let findOfDevice = Query(outbox, [.id, delivery], where: [.equal(protocolNumber), .equal(device)])

    /// As ``forget(_:)``, for a protocol that remembers deliveries that were given up. What another node enqueues meanwhile stays, and is dropped when
    /// it is to be posted.
    ///
    /// - Parameters:
    ///   - devices: that are not registered any more.
    ///   - note: remembers a delivery.
    /// - Returns: the changes, for the command that ends the devices.
    package static func forget(
        _ devices: [DeviceID], _ note: @escaping @Sendable (DeliveryID) -> Change
    ) -> StoreCommand<[Change]> {
        .read(devices.map { findOfDevice(.integer($0.protocol.rawValue), .integer($0.row)) }) { found in
            .done(
                try zip(devices, found).flatMap { device, rows in
                    try rows.flatMap { row in
                        [removeID(.integer(try row.integer(0)))] + (delivery(in: row).map { [note($0)] } ?? [])
                    } + [setDoubt(nil, of: device)]
                })
        }
    }

    private static let removeDevice = Mutation(outbox, .delete(where: [.equal(protocolNumber), .equal(device)]))

    /// What waits for a device is dropped, and nothing is held against its token any more: it is not registered any more.
    package static func forget(_ device: DeviceID) -> [Change] {
        [removeDevice(.integer(device.protocol.rawValue), .integer(device.row)), setDoubt(nil, of: device)]
    }
}
