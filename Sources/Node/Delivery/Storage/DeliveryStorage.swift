package import Core
package import NodeMetrics
package import Storage
import Waku

/// The tables of delivery: waiting notifications, accepted ones, and tokens in doubt. Devices and payloads are opaque: see ``DeliverySource``.
public enum DeliveryStorage {
    static let protocolNumber = Column("protocol", .integer)
    static let device = Column("device", .integer)
    static let delivery = Column("delivery", .bytes)
    static let expiresAt = Column("expires_at", .integer)
    static let sealed = Column("sealed", .bytes)
    static let at = Column("at", .integer)
    static let version = Column("version", .integer)
    /// When a single node first marked the row as possibly posted; null if it did not. Nodes that share the outbox use `cluster_mark`.
    static let markedAt = Column("marked_at", .integer, isOptional: true)

    /// Notifications that the node accepted and that gorush has not accepted yet.
    static let outbox = outbox(with: [markedAt])

    private static func outbox(with added: [Column]) -> Table {
        Table(
            "outbox", columns: [delivery, device, expiresAt, sealed, protocolNumber] + added, unique: [delivery],
            indexes: [Index("outbox_device", on: [protocolNumber, device])], neverReusesIDs: true,
            sealed: SealedColumn(sealed, boundTo: [delivery], label: "notifications"))
    }

    /// Deliveries that gorush accepted, in the order of time. Device and version identify the posted token, for failures that gorush reports later;
    /// rows from before version 2 of the schema lack them.
    static let accepted = Table(
        "accepted",
        columns: [
            delivery, at, optional(device), optional(version), postedAs, hasFailed, optional(protocolNumber),
        ], unique: [delivery], indexes: [Index("accepted_posted_as", on: [postedAs], where: .present(postedAs))])
    /// The delivery id under which it was posted; null: its own.
    static let postedAs = Column("posted_as", .bytes, isOptional: true)
    /// 1 once a failure was counted against the token.
    static let hasFailed = Column("has_failed", .integer, isOptional: true)

    /// The ``TokenDoubt`` of each device in doubt.
    static let doubt = Table(
        "doubt", columns: [protocolNumber, device, version, failures, firstFailure, lastFailure, unfailedSince],
        unique: [protocolNumber, device])
    static let failures = Column("failures", .integer)
    static let firstFailure = Column("first_failure", .integer)
    static let lastFailure = Column("last_failure", .integer)
    static let unfailedSince = Column("unfailed_since", .integer, isOptional: true)

    package static let part = StorePart(
        "delivery", tables: [outbox, accepted, doubt],
        migrations: [
            [.create(outbox(with: [])), .create(accepted), .create(doubt)],
            [.addColumn(markedAt, to: outbox)],
        ])

    private static func optional(_ column: Column) -> Column { Column(column.name, column.kind, isOptional: true) }

    // MARK: For other nodes

    package static let outboxTable = outbox
    package static let acceptedTable = accepted
    package static let deviceColumn = device
    package static let deliveryColumn = delivery
    package static let markedAtColumn = markedAt
    /// The columns of a ``WaitingDelivery``.
    package static let waitingColumns = [.id, protocolNumber, device, expiresAt, delivery]

    // MARK: The outbox

    private static let insert = Mutation(outbox, .insert([delivery, protocolNumber, device, expiresAt, sealed, markedAt]))
    private static let findWaiting = Query(
        outbox, [.id, protocolNumber, device, expiresAt], where: [.equal(delivery)])
    private static let findAccepted = Query(accepted, [.id], where: [.equal(delivery)])
    private static let removeDelivery = Mutation(outbox, .delete(where: [.equal(delivery)]))
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

    // MARK: Accepted deliveries

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

    // MARK: Doubts

    private static let findAnyDoubt = Query(doubt, [.id])
    private static let findDoubt = Query(
        doubt, [version, failures, firstFailure, lastFailure, unfailedSince], where: [.equal(protocolNumber), .equal(device)])
    private static let findDoubtedDevices = Query(doubt, [device], where: [.equal(protocolNumber)])
    private static let writeDoubt = Mutation(
        doubt, .upsert([protocolNumber, device, version, failures, firstFailure, lastFailure, unfailedSince]))
    private static let removeDoubt = Mutation(doubt, .delete(where: [.equal(protocolNumber), .equal(device)]))
    private static let removeOldDoubts = Mutation(doubt, .delete(where: [.less(lastFailure)]))

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

    // MARK: Forgetting

    /// Doubts whose last failure is more than 90 days before the cutoff are deleted; a device notified less often starts without a doubt.
    private static let doubtMemory = Duration.seconds(90 * 24 * 3600)

    private static let acceptedRows = TimedRows(accepted, by: at)

    /// Deletes accepted deliveries from before `cutoff`, and the oldest beyond `limit` from before `fresh`; and old doubts.
    package static func prune(
        _ store: any Store, before cutoff: Timestamp, at now: Timestamp, keeping limit: Int,
        since fresh: Timestamp = Timestamp(rawValue: .max)
    ) async throws(StoreError) {
        try await store.prune(acceptedRows, before: cutoff, at: now, keeping: limit, since: fresh)
        try await store.commit(.change([removeOldDoubts(.integer((cutoff - doubtMemory).rawValue))]))
    }
}
