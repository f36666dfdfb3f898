package import Core
package import Storage
import Waku

/// The tables of delivery: what waits for gorush, what it took, and tokens in doubt. Devices and payloads are opaque: see ``DeliverySource``.
package enum DeliveryStorage {
    static let protocolNumber = Column("protocol", .integer)
    static let device = Column("device", .integer)
    static let delivery = Column("delivery", .bytes)
    static let expiresAt = Column("expires_at", .integer)
    static let sealed = Column("sealed", .bytes)
    static let at = Column("at", .integer)
    static let version = Column("version", .integer)
    /// When the row was first marked as possibly posted; null: never. Null too where several nodes share the outbox: their marks name the node.
    static let markedAt = Column("marked_at", .integer, isOptional: true)

    /// Notifications that were accepted and not yet taken by gorush.
    static let outbox = outbox(with: [markedAt])

    private static func outbox(with added: [Column]) -> Table {
        Table(
            "outbox", columns: [delivery, device, expiresAt, sealed, protocolNumber] + added, unique: [delivery],
            indexes: [Index("outbox_device", on: [protocolNumber, device])], neverReusesIDs: true,
            sealed: SealedColumn(sealed, boundTo: [delivery], label: "notifications"))
    }

    /// Deliveries that gorush took, in the order of time. Device and version are those of the token that was posted, for failures that gorush
    /// tells of later; rows from before version 2 of the schema have none.
    static let accepted = Table(
        "accepted",
        columns: [
            delivery, at, optional(device), optional(version), postedAs, hasFailed, optional(protocolNumber),
        ], unique: [delivery], indexes: [Index("accepted_posted_as", on: [postedAs], where: .present(postedAs))])
    /// The delivery whose id it was posted under, if not its own.
    static let postedAs = Column("posted_as", .bytes, isOptional: true)
    /// 1 once a failure was held against the token.
    static let hasFailed = Column("has_failed", .integer, isOptional: true)

    /// ``TokenDoubt``.
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
    /// What ``WaitingDelivery`` is read from.
    package static let waitingColumns = [.id, protocolNumber, device, expiresAt, delivery]

    // MARK: The outbox

    private static let insert = Mutation(outbox, .insert([delivery, protocolNumber, device, expiresAt, sealed, markedAt]))
    private static let findWaiting = Query(
        outbox, [.id, protocolNumber, device, expiresAt], where: [.equal(delivery)])
    private static let findAccepted = Query(accepted, [.id], where: [.equal(delivery)])
    private static let removeDelivery = Mutation(outbox, .delete(where: [.equal(delivery)]))
    private static let countWaiting = Query(outbox, [.count])
    private static let minimumExpiry = Query(outbox, [.minimum(expiresAt)])
    private static let oldestExpiry = Query(outbox, [expiresAt], order: [.ascending(.id)])
    private static let all = Query(outbox, waitingColumns + [markedAt], order: [.ascending(.id)])
    private static let contents = Query(
        outbox, [.id, protocolNumber, device, expiresAt, delivery, sealed, markedAt], where: [.idAmong])
    private static let setMark = Mutation(outbox, .updateAny([markedAt], where: [.equal(.id), .absent(markedAt)]))

    /// Accepts a notification. Inserts one row; its id is that of the ``WaitingDelivery``.
    ///
    /// - Parameters:
    ///   - delivery: not in the outbox and not accepted.
    ///   - device: whom it is for.
    ///   - payload: what the protocol makes a notification of.
    ///   - expires: when it is given up.
    ///   - markedAt: the present time where one node has the outbox for itself: the row is marked in its own commit, since it is posted at once.
    ///     nil where nodes share the outbox.
    ///   - sealer: of the store.
    package static func enqueue(
        _ delivery: DeliveryID, for device: DeviceID, payload: [UInt8], expires: Timestamp, markedAt: Timestamp? = nil, by sealer: Sealer
    ) -> Change {
        insert(
            .bytes(delivery.bytes), .integer(device.protocol.rawValue), .integer(device.row), .integer(expires.rawValue),
            sealer.seal(payload, in: outbox, boundTo: [.bytes(delivery.bytes)]), Value(markedAt?.rawValue))
    }

    /// Marks rows as possibly posted, before their first post. Rows that are marked keep the time of their first mark.
    package static func mark(_ ids: [Int64], at now: Timestamp) -> StoreCommand<Void> {
        .change(ids.map { setMark(.integer(now.rawValue), .integer($0)) })
    }

    /// Each finds a row if the delivery is in the outbox or accepted, respectively.
    package static func search(for delivery: DeliveryID) -> [Read] {
        [findAccepted(.bytes(delivery.bytes)), findWaiting(.bytes(delivery.bytes))]
    }

    /// What is known of deliveries that were started before; nil when nothing is.
    package static func states(of deliveries: [DeliveryID]) -> StoreCommand<[DeliveryState?]> {
        .read(deliveries.flatMap(search)) { found in
            .done(
                stride(from: 0, to: found.count, by: 2).map { index in
                    found[index].isEmpty ? (found[index + 1].isEmpty ? nil : .waiting) : .accepted
                })
        }
    }

    /// nil when it does not wait.
    package static func waiting(_ delivery: DeliveryID) -> StoreCommand<WaitingDelivery?> {
        .find(findWaiting(.bytes(delivery.bytes))) { rows in
            .done(try rows.first.map { try WaitingDelivery($0, delivery) })
        }
    }

    package static func waitingCount() -> StoreCommand<Int> {
        .find(countWaiting()) { .done(Int(try $0[0].integer(0))) }
    }

    /// When the first notification is given up; nil when none waits.
    package static func firstExpiry() -> StoreCommand<Timestamp?> {
        .find(minimumExpiry()) { .done(try $0[0].optionalInteger(0).map(Timestamp.init)) }
    }

    /// When the notification that waits for longest is given up; nil when none waits.
    package static func oldestWaitingExpiry() -> StoreCommand<Timestamp?> {
        .find(oldestExpiry(limit: 1)) { .done(try $0.first.map { Timestamp(rawValue: try $0.integer(0)) }) }
    }

    /// All that waits, oldest first; or the first ones.
    package static func waitingDeliveries(limit: Int? = nil) -> StoreCommand<[WaitingDelivery]> {
        .find(all(limit: limit)) { rows in
            .done(try rows.compactMap { row in try waitingDelivery(row, markedAt: try markedAt(row, 5)) })
        }
    }

    /// - Parameters:
    ///   - row: with ``waitingColumns``.
    ///   - markedAt: the time of its first mark.
    /// - Returns: nil when its name has another form than this release's.
    package static func waitingDelivery(_ row: Row, markedAt: Timestamp?) throws -> WaitingDelivery? {
        try DeliveryID(bytes: row.bytes(4)).map { try WaitingDelivery(row, $0, markedAt: markedAt) }
    }

    private static func markedAt(_ row: Row, _ index: Int) throws -> Timestamp? { try row.optionalInteger(index).map(Timestamp.init) }

    private static let oldestOfDevices = Query(
        outbox, [.column(device), .minimum(.id)], where: [.equal(protocolNumber), .among(device)], group: device)

    /// The id of what waits for longest for each device.
    package static func oldest(of devices: [DeviceID]) -> StoreCommand<[DeviceID: Int64]> {
        let byProtocol = Array(Dictionary(grouping: devices, by: \.protocol))
        return .read(byProtocol.map { oldestOfDevices(.integer($0.key.rawValue), ids: $0.value.map(\.row)) }) { found in
            var oldest: [DeviceID: Int64] = [:]
            for ((number, _), rows) in zip(byProtocol, found) {
                for row in rows { oldest[DeviceID(number, row: try row.integer(0))] = try row.integer(1) }
            }
            return .done(oldest)
        }
    }

    /// What is in the outbox under some ids; others are left out.
    package static func stored(_ ids: [Int64]) -> StoreCommand<[StoredDelivery]> {
        .find(contents(ids: ids)) { rows in
            .done(
                try rows.compactMap { row in
                    try DeliveryID(bytes: row.bytes(4)).map {
                        StoredDelivery(
                            waiting: try WaitingDelivery(row, $0, markedAt: try markedAt(row, 6)), sealed: try row.bytes(5))
                    }
                })
        }
    }

    // MARK: What gorush took

    private static let insertAccepted = Mutation(
        accepted, .insertOrIgnore([delivery, at, protocolNumber, device, version, postedAs]))
    private static let findPosted = Query(
        accepted, [delivery, protocolNumber, device, version], where: [.between(delivery), .absent(postedAs), .present(device)])
    private static let findShared = Query(
        accepted, [delivery, protocolNumber, device, version], where: [.between(postedAs), .present(device)])
    private static let findFailure = Query(accepted, [hasFailed], where: [.equal(delivery)])
    private static let setFailure = Mutation(accepted, .update([hasFailed], where: [.equal(delivery), .absent(hasFailed)]))

    /// gorush took a notification: it leaves the outbox, and is known not to be delivered again.
    ///
    /// - Parameters:
    ///   - posted: it is noted even if the device's end emptied the outbox meanwhile.
    ///   - shared: the delivery under whose id it was posted, if not under its own.
    ///   - now: when.
    package static func accept(_ posted: PostedNotification, postedAs shared: DeliveryID?, at now: Timestamp) -> [Change] {
        let delivery = Value.bytes(posted.delivery.bytes)
        return [
            insertAccepted(
                delivery, .integer(now.rawValue), .integer(posted.device.protocol.rawValue), .integer(posted.device.row),
                .integer(Int64(bitPattern: posted.version)), Value(shared?.bytes)),
            // By its name: the row may be another one by now, if the device ended and registered anew while this was on its way.
            removeDelivery(delivery),
        ]
    }

    /// What was posted under an id: the delivery that begins with these bytes, and those that were posted together with it.
    package static func posted(under prefix: [UInt8]) -> StoreCommand<[PostedNotification]> {
        let prefix = prefix.prefix(DeliveryID.byteCount)
        let (low, high) = (fill(prefix, with: 0), fill(prefix, with: 0xFF))
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

    private static func fill(_ prefix: ArraySlice<UInt8>, with byte: UInt8) -> Value {
        .bytes(prefix + Array(repeating: byte, count: DeliveryID.byteCount - prefix.count))
    }

    /// Whether failures were held already against the tokens that deliveries were posted with.
    package static func haveFailures(_ deliveries: [DeliveryID]) -> StoreCommand<[Bool]> {
        .read(deliveries.map { findFailure(.bytes($0.bytes)) }) { found in
            .done(found.map { rows in rows.first.map { !$0.isNull(0) } ?? false })
        }
    }

    /// Holds a failure against the token that a delivery was posted with. False when one was already, or the delivery is not known: gorush may
    /// tell the same twice, in its reply and by its hook, and two nodes of a database may be told at once.
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

    /// - Parameters:
    ///   - doubt: nil to forget it.
    ///   - device: whose token it is about.
    package static func setDoubt(_ doubt: TokenDoubt?, of device: DeviceID) -> Change {
        let (number, row) = (Value.integer(device.protocol.rawValue), Value.integer(device.row))
        guard let doubt else { return removeDoubt(number, row) }
        return writeDoubt(
            number, row, .integer(Int64(bitPattern: doubt.version)), .integer(Int64(doubt.failureCount)),
            .integer(doubt.firstFailure.rawValue), .integer(doubt.lastFailure.rawValue), Value(doubt.unfailedSince?.rawValue))
    }

    /// gorush accepted a notification for a device whose token may be in doubt.
    static func noteAcceptance(by device: DeviceID, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        doubt(of: device).then { doubt in
            guard var doubt else { return .change([]) }
            let isOver = doubt.version != version || doubt.accepted(at: now)
            return .change([setDoubt(isOver ? nil : doubt, of: device)])
        }
    }

    // MARK: Forgetting

    /// A device that is notified so seldom is not worth a row: it begins anew.
    private static let doubtMemory = Duration.seconds(90 * 24 * 3600)

    private static let acceptedRows = TimedRows(accepted, by: at)

    /// Forgets deliveries from before `cutoff`, and the oldest beyond `limit`.
    package static func prune(before cutoff: Timestamp, keeping limit: Int) -> StoreCommand<Void> {
        acceptedRows.prune(before: cutoff.rawValue, keeping: limit).then {
            .change([removeOldDoubts(.integer((cutoff - doubtMemory).rawValue))])
        }
    }
}
