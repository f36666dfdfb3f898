package import Storage

extension DeliveryStorage {
    private static let latest = Query(accepted, [device, protocolNumber], where: [.present(device)], order: [.descending(.id)])

    /// Rows of the devices of a protocol that gorush accepted a notification for, the latest first, without duplicates.
    ///
    /// - Parameters:
    ///   - number: the protocol.
    ///   - limit: the number of notifications that are looked at.
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
