package import Core
package import Storage

/// Deliveries that gorush accepted.
extension DeliveryStorage {
    private static let insertAccepted = Mutation(
        accepted, .insertOrIgnore([delivery, at, protocolNumber, device, version, postedAs]))
    private static let findPosted = Query(
        accepted, [delivery, protocolNumber, device, version], where: [.between(delivery), .absent(postedAs), .present(device)])
    private static let findShared = Query(
        accepted, [delivery, protocolNumber, device, version], where: [.between(postedAs), .present(device)])
    private static let findFailure = Query(accepted, [hasFailed], where: [.equal(delivery)])
    private static let setFailure = Mutation(accepted, .update([hasFailed], where: [.equal(delivery), .absent(hasFailed)]))

    /// Moves a notification that gorush accepted from the outbox to the accepted deliveries, so that it is not delivered again.
    ///
    /// - Parameters:
    ///   - posted: the notification, recorded even if its device was removed and its outbox rows were deleted meanwhile.
    ///   - shared: the delivery under whose id it was posted, if not its own.
    package static func accept(_ posted: PostedNotification, postedAs shared: DeliveryID?, at now: Timestamp) -> [Change] {
        let delivery = Value.bytes(posted.delivery.bytes)
        return [
            insertAccepted(
                delivery, .integer(now.rawValue), .integer(posted.device.protocol.rawValue), .integer(posted.device.row),
                .integer(Int64(bitPattern: posted.version)), Value(shared?.bytes)),
            // By delivery id: the row may be a different one if the device was removed and registered again during the post.
            removeDelivery(delivery),
        ]
    }

    /// The notifications posted under an id: the delivery whose id begins with `prefix`, and those posted together with it.
    package static func posted(under prefix: [UInt8]) -> StoreCommand<[PostedNotification]> {
        let (low, high) = range(of: prefix)
        return .read([findPosted(low, high), findShared(low, high)]) { found in
            .done(
                try found.flatMap(\.self).compactMap { row in
                    try DeliveryID(bytes: row.bytes(0)).map {
                        PostedNotification(
                            delivery: $0, device: DeviceID(ProtocolNumber(rawValue: try row.integer(1)), row: try row.integer(2)),
                            version: try row.unsigned(3))
                    }
                })
        }
    }

    /// The lowest and the highest delivery id with a prefix.
    static func range(of prefix: [UInt8]) -> (low: Value, high: Value) {
        let prefix = prefix.prefix(DeliveryID.byteCount)
        return (fill(prefix, with: 0), fill(prefix, with: 0xFF))
    }

    private static func fill(_ prefix: ArraySlice<UInt8>, with byte: UInt8) -> Value {
        .bytes(prefix + Array(repeating: byte, count: DeliveryID.byteCount - prefix.count))
    }

    /// Whether a failure was already counted for each delivery against the token that it was posted with.
    package static func haveFailures(_ deliveries: [DeliveryID]) -> StoreCommand<[Bool]> {
        .read(deliveries.map { findFailure(.bytes($0.bytes)) }) { found in
            .done(found.map { rows in rows.first.map { !$0.isNull(0) } ?? false })
        }
    }

    /// Counts a failure against the token that a delivery was posted with. False when one was counted before, or the delivery is unknown: gorush may
    /// report a failure twice, in its reply and by its hook, and to two nodes of a database at once.
    static func noteFailure(of delivery: DeliveryID) -> StoreCommand<Bool> {
        .find(findFailure(.bytes(delivery.bytes))) { rows in
            guard let row = rows.first, row.isNull(0) else { return .done(false) }
            return .change([setFailure(.integer(1), .bytes(delivery.bytes))], true)
        }
    }

    private static let latestUnfailed = Query(
        accepted, [device, protocolNumber, version], where: [.present(device), .absent(hasFailed)], order: [.descending(.id)])

    /// The devices of all protocols that gorush accepted a notification for, without a failure reported since, and the version of the registration
    /// at the latest one.
    ///
    /// - Parameter limit: the number of notifications that are looked at.
    static func recentlyAccepted(limit: Int) -> StoreCommand<[DeviceID: UInt64]> {
        .find(latestUnfailed(limit: limit)) { rows in
            .done(
                try rows.reduce(into: [:]) { found, row in
                    guard let number = try row.optionalInteger(1), !row.isNull(2) else { return }
                    let device = DeviceID(ProtocolNumber(rawValue: number), row: try row.integer(0))
                    if found[device] == nil { found[device] = try row.unsigned(2) }
                })
        }
    }

    private static let latest = Query(accepted, [device, protocolNumber], where: [.present(device)], order: [.descending(.id)])

    /// Rows of the devices of a protocol that gorush accepted a notification for, the latest first, without duplicates.
    ///
    /// - Parameter limit: the number of notifications that are looked at.
    package static func recentDevices(of number: ProtocolNumber, limit: Int) -> StoreCommand<[Int64]> {
        .find(latest(limit: limit)) { rows in
            var seen: Set<Int64> = []
            return .done(
                try rows.compactMap { row in
                    guard let device = try row.optionalInteger(0), try row.optionalInteger(1) == number.rawValue,
                        seen.insert(device).inserted
                    else { return nil }
                    return device
                })
        }
    }
}
