package import Core
public import Storage

/// Removal of notifications from the outbox that gorush did not accept.
extension DeliveryStorage {
    private static let findDeliveries = Query(outbox, [protocolNumber, delivery], where: [.idAmong])
    private static let removeID = Mutation(outbox, .delete(where: [.equal(.id)]))

    /// The number of notifications that one commit gives up: others wait for it.
    static let dropLimit = 2_000

    /// Gives notifications up: expired, evicted, or refused by gorush.
    ///
    /// - Parameters:
    ///   - ids: the ids of outbox rows, which may be gone already.
    ///   - sources: the protocols, which may record such deliveries.
    package static func drop(_ ids: [Int64], of sources: DeliverySources, at now: Timestamp) -> StoreCommand<Void> {
        .find(findDeliveries(ids: ids)) { rows in
            // A damaged row is deleted as well.
            let known = rows.compactMap { row -> (number: ProtocolNumber, delivery: DeliveryID)? in
                guard let number = try? row.integer(0), let delivery = delivery(in: row) else { return nil }
                return (ProtocolNumber(rawValue: number), delivery)
            }
            return .change(ids.map { removeID(.integer($0)) } + sources.noteGivenUp(known, at: now))
        }
    }

    /// The delivery id in the second column; nil when it is damaged.
    private static func delivery(in row: Row) -> DeliveryID? { (try? row.bytes(1)).flatMap { DeliveryID(bytes: $0) } }

    private static let findOfDevice = Query(outbox, [.id, delivery], where: [.equal(protocolNumber), .equal(device)])

    /// Like ``forget(_:)``, for a protocol that records deliveries that were given up. Deliveries that another node enqueues meanwhile stay, and are
    /// dropped when they are about to be posted.
    ///
    /// - Parameters:
    ///   - devices: devices that are no longer registered.
    ///   - note: makes the change that records a delivery.
    /// - Returns: the changes, for the command that removes the devices.
    package static func forget(
        _ devices: [DeviceID], _ note: @escaping @Sendable (DeliveryID) -> Change
    ) -> StoreCommand<[Change]> {
        .read(devices.map { findOfDevice(.integer($0.protocol.rawValue), .integer($0.row)) }) { found in
            var changes: [Change] = []
            for (device, rows) in zip(devices, found) {
                for row in rows {
                    changes.append(removeID(.integer(try row.integer(0))))
                    if let delivery = delivery(in: row) { changes.append(note(delivery)) }
                }
                changes.append(setDoubt(nil, of: device))
            }
            return .done(changes)
        }
    }

    private static let removeDevice = Mutation(outbox, .delete(where: [.equal(protocolNumber), .equal(device)]))

    /// Drops the waiting notifications and the token doubt of a device that is no longer registered.
    public static func forget(_ device: DeviceID) -> [Change] {
        [removeDevice(.integer(device.protocol.rawValue), .integer(device.row)), setDoubt(nil, of: device)]
    }
}
