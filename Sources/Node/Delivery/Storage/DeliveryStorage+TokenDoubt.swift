import Core
package import Storage

/// Device tokens in doubt.
extension DeliveryStorage {
    private static let findAnyDoubt = Query(doubt, [.id])
    private static let findDoubt = Query(
        doubt, [version, failures, firstFailure, lastFailure, unfailedSince], where: [.equal(protocolNumber), .equal(device)])
    private static let findDoubtedDevices = Query(doubt, [device], where: [.equal(protocolNumber)])
    private static let writeDoubt = Mutation(
        doubt, .upsert([protocolNumber, device, version, failures, firstFailure, lastFailure, unfailedSince]))
    private static let removeDoubt = Mutation(doubt, .delete(where: [.equal(protocolNumber), .equal(device)]))
    static let removeOldDoubts = Mutation(doubt, .delete(where: [.less(lastFailure)]))

    package static func hasDoubts() -> StoreCommand<Bool> {
        .find(findAnyDoubt(limit: 1)) { .done(!$0.isEmpty) }
    }

    /// Rows of a protocol's devices whose tokens are in doubt.
    package static func doubtedDevices(of number: ProtocolNumber) -> StoreCommand<[Int64]> {
        .find(findDoubtedDevices(.integer(number.rawValue))) { rows in .done(try rows.map { try $0.integer(0) }) }
    }

    package static func doubt(of device: DeviceID) -> StoreCommand<TokenDoubt?> {
        .find(findDoubt(.integer(device.protocol.rawValue), .integer(device.row))) { rows in
            .done(
                try rows.first.map { row in
                    TokenDoubt(
                        version: try row.unsigned(0), failureCount: Int(try row.integer(1)),
                        firstFailure: Timestamp(rawValue: try row.integer(2)), lastFailure: Timestamp(rawValue: try row.integer(3)),
                        unfailedSince: try row.optionalInteger(4).map(Timestamp.init))
                })
        }
    }

    /// - Parameter doubt: the new doubt; nil deletes it.
    package static func setDoubt(_ doubt: TokenDoubt?, of device: DeviceID) -> Change {
        let (number, row) = (Value.integer(device.protocol.rawValue), Value.integer(device.row))
        guard let doubt else { return removeDoubt(number, row) }
        return writeDoubt(
            number, row, .integer(Int64(bitPattern: doubt.version)), .integer(Int64(doubt.failureCount)),
            .integer(doubt.firstFailure.rawValue), .integer(doubt.lastFailure.rawValue), Value(doubt.unfailedSince?.rawValue))
    }

    /// Updates the doubt about a device's token after gorush accepted a notification for it.
    static func noteAcceptance(by device: DeviceID, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        doubt(of: device).then { doubt in
            guard var doubt else { return .change([]) }
            let isOver = doubt.version != version || doubt.accepted(at: now)
            return .change([setDoubt(isOver ? nil : doubt, of: device)])
        }
    }
}
