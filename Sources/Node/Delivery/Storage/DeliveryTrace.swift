package import Core
package import Storage

/// The stored state of one notification: for `admin trace`.
package struct DeliveryTrace: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// In the outbox, as the row `id`. `markedAt` is the time of the mark before its first post; nil: none was begun.
        case waiting(id: Int64, expires: Timestamp, markedAt: Timestamp?)
        /// gorush, or the push service of a Web Push subscription, accepted it. `version` is that of the registration whose token was posted, and
        /// `hasFailed` whether a failure of that token was reported later.
        case accepted(at: Timestamp, version: UInt64, hasFailed: Bool)
    }

    package let delivery: DeliveryID
    package let device: DeviceID
    package let state: State
}

extension DeliveryStorage {
    private static let tracedWaiting = Query(
        outbox, [delivery, protocolNumber, device, .id, expiresAt, markedAt], where: [.between(delivery)])
    private static let acceptedColumns = [delivery, protocolNumber, device, at, version, hasFailed]
    private static let tracedAccepted = Query(accepted, acceptedColumns, where: [.between(delivery), .present(device)])
    private static let tracedShared = Query(accepted, acceptedColumns, where: [.between(postedAs), .present(device)])

    /// The notifications with an id that begins with `prefix`, and those posted under such an id. Accepted ones are stored for 24 hours; nothing is
    /// stored about those that were dropped.
    package static func traces(of prefix: [UInt8]) -> StoreCommand<[DeliveryTrace]> {
        let (low, high) = range(of: prefix)
        return .read([tracedWaiting(low, high), tracedAccepted(low, high), tracedShared(low, high)]) { found in
            let waiting = try found[0].compactMap { row in
                try trace(row) {
                    .waiting(
                        id: try row.integer(3), expires: Timestamp(rawValue: try row.integer(4)),
                        markedAt: try row.optionalInteger(5).map(Timestamp.init))
                }
            }
            let accepted = try (found[1] + found[2]).compactMap { row in
                try trace(row) {
                    .accepted(at: Timestamp(rawValue: try row.integer(3)), version: try row.unsigned(4), hasFailed: !row.isNull(5))
                }
            }
            return .done(waiting + accepted)
        }
    }

    private static func trace(_ row: Row, _ state: () throws -> DeliveryTrace.State) throws -> DeliveryTrace? {
        guard let delivery = DeliveryID(bytes: try row.bytes(0)) else { return nil }
        let device = DeviceID(ProtocolNumber(rawValue: try row.integer(1)), row: try row.integer(2))
        return DeliveryTrace(delivery: delivery, device: device, state: try state())
    }
}
