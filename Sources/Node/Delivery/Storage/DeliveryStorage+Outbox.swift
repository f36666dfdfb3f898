package import Core
package import NodeMetrics
package import Storage

/// The notifications that wait for gorush.
extension DeliveryStorage {
    private static let insert = Mutation(outbox, .insert([delivery, protocolNumber, device, expiresAt, sealed, markedAt]))
    private static let findWaiting = Query(
        outbox, [.id, protocolNumber, device, expiresAt], where: [.equal(delivery)])
    private static let findAccepted = Query(accepted, [.id], where: [.equal(delivery)])
    static let removeDelivery = Mutation(outbox, .delete(where: [.equal(delivery)]))
    private static let countWaiting = Query(outbox, [.count])
    private static let minimumExpiry = Query(outbox, [.minimum(expiresAt)])
    private static let all = Query(outbox, waitingColumns + [markedAt], order: [.ascending(.id)])
    private static let contents = Query(
        outbox, [.id, protocolNumber, device, expiresAt, delivery, sealed, markedAt], where: [.idAmong])
    private static let setMark = Mutation(outbox, .updateAny([markedAt], where: [.equal(.id), .absent(markedAt)]))

    /// Accepts a notification by inserting one row; the row id becomes the ``WaitingDelivery/id``.
    ///
    /// - Parameters:
    ///   - delivery: not in the outbox and not accepted.
    ///   - payload: the protocol's encoding of the notification.
    ///   - expires: the time at which it is given up.
    ///   - markedAt: the present time when one node owns the whole outbox: the row is posted at once, so its own commit marks it. nil when nodes
    ///     share the outbox.
    package static func enqueue(
        _ delivery: DeliveryID, for device: DeviceID, payload: [UInt8], expires: Timestamp, markedAt: Timestamp? = nil, by sealer: Sealer
    ) -> Change {
        insert(
            .bytes(delivery.bytes), .integer(device.protocol.rawValue), .integer(device.row), .integer(expires.rawValue),
            sealer.seal(payload, in: outbox, boundTo: [.bytes(delivery.bytes)]), Value(markedAt?.rawValue))
    }

    /// Accepts a notification unless it waits or was accepted already, so that a message that is handled again notifies once.
    ///
    /// - Parameters:
    ///   - delivery: the same each time that the message is handled for this device.
    ///   - payload: the protocol's encoding of the notification.
    ///   - expires: the time at which it is given up.
    ///   - markedAt: as in ``enqueue(_:for:payload:expires:markedAt:by:)``.
    /// - Returns: the notification to post; nil if the delivery is known.
    package static func enqueueOnce(
        _ delivery: DeliveryID, for device: DeviceID, at address: DeviceAddress, _ content: any NotificationContent, payload: [UInt8],
        expires: Timestamp, markedAt: Timestamp?, times: MessageTimes?, by sealer: Sealer
    ) -> StoreCommand<QueuedDelivery?> {
        .read(search(for: delivery)) { found in
            guard found.allSatisfy(\.isEmpty) else { return .done(nil) }
            let change = enqueue(delivery, for: device, payload: payload, expires: expires, markedAt: markedAt, by: sealer)
            return .apply([change]) { inserted in
                let waiting = WaitingDelivery(id: inserted[0], delivery: delivery, device: device, expires: expires, markedAt: markedAt)
                return QueuedDelivery(waiting, to: address, content, times: times)
            }
        }
    }

    /// Marks rows as possibly posted, before their first post. Marked rows keep the time of their first mark.
    package static func mark(_ ids: [Int64], at now: Timestamp) -> StoreCommand<Void> {
        .change(ids.map { setMark(.integer(now.rawValue), .integer($0)) })
    }

    /// Two reads: the first finds a row if the delivery is accepted, the second if it is in the outbox.
    package static func search(for delivery: DeliveryID) -> [Read] {
        [findAccepted(.bytes(delivery.bytes)), findWaiting(.bytes(delivery.bytes))]
    }

    /// The states of deliveries; nil for a delivery in neither table.
    package static func states(of deliveries: [DeliveryID]) -> StoreCommand<[DeliveryState?]> {
        .read(deliveries.flatMap(search)) { found in
            .done(
                stride(from: 0, to: found.count, by: 2).map { index in
                    found[index].isEmpty ? (found[index + 1].isEmpty ? nil : .waiting) : .accepted
                })
        }
    }

    /// The waiting delivery; nil when it is not in the outbox.
    package static func waiting(_ delivery: DeliveryID) -> StoreCommand<WaitingDelivery?> {
        .find(findWaiting(.bytes(delivery.bytes))) { rows in
            .done(try rows.first.map { try WaitingDelivery($0, delivery) })
        }
    }

    package static func waitingCount() -> StoreCommand<Int> {
        .find(countWaiting()) { .done(Int(try $0[0].integer(0))) }
    }

    /// The earliest expiry in the outbox; nil when it is empty.
    package static func firstExpiry() -> StoreCommand<Timestamp?> {
        .find(minimumExpiry()) { .done(try $0[0].optionalInteger(0).map(Timestamp.init)) }
    }

    /// All waiting deliveries, or the first `limit`, oldest first.
    package static func waitingDeliveries(limit: Int? = nil) -> StoreCommand<[WaitingDelivery]> {
        .find(all(limit: limit)) { rows in
            .done(try rows.compactMap { row in try waitingDelivery(row, markedAt: try markedAt(row, 5)) })
        }
    }

    /// - Parameters:
    ///   - row: a row with ``waitingColumns``.
    ///   - markedAt: the time of its first mark.
    /// - Returns: nil when its delivery id does not have the form of this release.
    package static func waitingDelivery(_ row: Row, markedAt: Timestamp?) throws -> WaitingDelivery? {
        try DeliveryID(bytes: row.bytes(4)).map { try WaitingDelivery(row, $0, markedAt: markedAt) }
    }

    private static func markedAt(_ row: Row, _ index: Int) throws -> Timestamp? { try row.optionalInteger(index).map(Timestamp.init) }

    private static let oldestOfDevices = Query(
        outbox, [.column(device), .minimum(.id)], where: [.equal(protocolNumber), .among(device)], group: device)

    /// The id of the oldest waiting delivery of each device.
    package static func oldest(of devices: [DeviceID]) -> StoreCommand<[DeviceID: Int64]> { figures(oldestOfDevices, of: devices) }

    private static let countOfDevices = Query(
        outbox, [.column(device), .count], where: [.equal(protocolNumber), .among(device)], group: device)

    /// The number of waiting deliveries of each device that has some.
    package static func waitingCounts(of devices: [DeviceID]) -> StoreCommand<[DeviceID: Int]> {
        figures(countOfDevices, of: devices).map { $0.mapValues { Int($0) } }
    }

    /// - Parameter query: of a protocol's devices; finds a device and a number in each row.
    private static func figures(_ query: Query, of devices: [DeviceID]) -> StoreCommand<[DeviceID: Int64]> {
        let byProtocol = Array(Dictionary(grouping: devices, by: \.protocol))
        return .read(byProtocol.map { query(.integer($0.key.rawValue), ids: $0.value.map(\.row)) }) { found in
            var figures: [DeviceID: Int64] = [:]
            for ((number, _), rows) in zip(byProtocol, found) {
                for row in rows { figures[DeviceID(number, row: try row.integer(0))] = try row.integer(1) }
            }
            return .done(figures)
        }
    }

    /// The outbox rows with these ids and their sealed payloads, by id; ids without a row are left out.
    package static func stored(_ ids: [Int64]) -> StoreCommand<[Int64: (waiting: WaitingDelivery, sealed: [UInt8])]> {
        .find(contents(ids: ids)) { rows in
            var stored: [Int64: (waiting: WaitingDelivery, sealed: [UInt8])] = [:]
            for row in rows {
                guard let waiting = try waitingDelivery(row, markedAt: try markedAt(row, 6)) else { continue }
                stored[waiting.id] = (waiting, try row.bytes(5))
            }
            return .done(stored)
        }
    }

    /// The payload of a row of ``stored(_:)``, as the protocol encoded it.
    ///
    /// - Throws: `CryptoError` when the row was altered.
    package static func payload(_ sealed: [UInt8], of delivery: DeliveryID, by sealer: Sealer) throws -> [UInt8] {
        try sealer.open(sealed, in: outbox, boundTo: [.bytes(delivery.bytes)])
    }
}
