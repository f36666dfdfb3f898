package import Core
package import Storage

/// Payloads of notifications that wait, for a protocol whose payloads depend on the registration of their device.
extension DeliveryStorage {
    /// A payload in the outbox.
    package struct Sealed: Sendable {
        let id: Int64
        package let delivery: DeliveryID
        /// See ``DeliveryStorage/payload(_:of:by:)``.
        package let payload: [UInt8]
    }

    private static let findSealed = Query(
        outbox, [.id, delivery, sealed], where: [.equal(protocolNumber), .equal(device)], order: [.ascending(.id)])
    private static let setSealed = Mutation(outbox, .updateAny([sealed], where: [.equal(.id)]))

    /// The payloads that wait for each of these devices, the oldest first.
    ///
    /// - Parameter limit: for each device.
    package static func sealed(of devices: [DeviceID], limit: Int) -> StoreCommand<[[Sealed]]> {
        .read(devices.map { findSealed(.integer($0.protocol.rawValue), .integer($0.row), limit: limit) }) { found in
            .done(
                try found.map { rows in
                    try rows.compactMap { row in
                        let (id, payload) = (try row.integer(0), try row.bytes(2))
                        return DeliveryID(bytes: try row.bytes(1)).map { Sealed(id: id, delivery: $0, payload: payload) }
                    }
                })
        }
    }

    /// Replaces a payload; no effect when the notification has left the outbox.
    package static func replacePayload(of waiting: Sealed, with payload: [UInt8], by sealer: Sealer) -> Change {
        setSealed(sealer.seal(payload, in: outbox, boundTo: [.bytes(waiting.delivery.bytes)]), .integer(waiting.id))
    }
}
