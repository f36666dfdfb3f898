package import Storage
import Waku

extension DeliveryStorage {
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
