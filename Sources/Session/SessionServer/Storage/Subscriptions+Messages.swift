import Delivery
import Core
import NodeMetrics
import SessionProtocol
import Storage
import Waku

/// The result of a message.
struct NotifiedMessage: Sendable {
    /// Notifications put into the outbox, in the order of their rows.
    var queued: [QueuedDelivery] = []
    /// Number of deliveries that were made before, because another storage server reported the same message.
    var duplicates = 0
    /// Whether any subscription of the account wants the message's namespace.
    var isWanted = false
}

/// The notifications of a message, encrypted before they are submitted to the writer.
struct PreparedMessage: Sendable {
    /// A class, because it is passed on often, and copying its fields would cost more than the allocation.
    final class Notification: Sendable {
        /// The subscription's row.
        let row: Int64
        let account: AccountID
        /// The key of the storage server that reported the message.
        let server: [UInt8]
        let signedAt: Int64
        let delivery: DeliveryID
        /// The name that another report of the message may have given to the same delivery.
        let otherName: DeliveryID?
        let address: DeviceAddress
        let content: SessionContent
        /// The changes that put the notification into the outbox. The first inserts its row there.
        let changes: [Change]
        /// The mark with which it enters the outbox.
        let markedAt: Timestamp?

        init(
            row: Int64, account: AccountID, server: [UInt8], signedAt: Int64, delivery: DeliveryID, otherName: DeliveryID?,
            address: DeviceAddress,
            content: SessionContent, changes: [Change], markedAt: Timestamp?
        ) {
            (self.row, self.account, self.server, self.signedAt) = (row, account, server, signedAt)
            (self.delivery, self.otherName) = (delivery, otherName)
            (self.address, self.content, self.changes, self.markedAt) = (address, content, changes, markedAt)
        }

        var names: [DeliveryID] { [delivery] + (otherName.map { [$0] } ?? []) }
    }

    let message: NotifyMessage
    /// The expiry time of its notifications.
    let expires: Timestamp
    /// Notifications for subscriptions that want the message, without known duplicates.
    let notifications: [Notification]
    let duplicates: Int
    /// The number of notifications that a rate limit refused.
    let refused: Int
    /// nil before it is admitted.
    var times: MessageTimes?

    var isWanted: Bool { !notifications.isEmpty || duplicates > 0 || refused > 0 }
}

extension Subscriptions {
    /// Limit of the subscriptions read for a message. Above the device limit, because an account may have more devices if that limit was lowered.
    private static let deviceBound = 10_000

    private static let findOfAccount = Query(
        SessionStorage.subscription,
        [.id, SessionStorage.name, SessionStorage.signedAt, SessionStorage.service, SessionStorage.sealed],
        where: [.equal(SessionStorage.account), .atLeast(SessionStorage.signedAt)], order: [.ascending(.id)])
    private static let findVersions = Query(SessionStorage.subscription, [.id, SessionStorage.signedAt], where: [.idAmong])
    private static let findSeen = Query(SessionStorage.seen, [.id], where: [.equal(SessionStorage.delivery)])
    private static let insertSeen = Mutation(SessionStorage.seen, .insertOrIgnore([SessionStorage.delivery, SessionStorage.at]))
    /// A conflict if another node has made the delivery meanwhile: it may have left the outbox already.
    private static let insertNew = Mutation(SessionStorage.seen, .insert([SessionStorage.delivery, SessionStorage.at]))

    /// Remembers a delivery that is neither in the outbox nor accepted.
    static func noteSeen(_ delivery: DeliveryID, at now: Timestamp) -> Change {
        insertSeen(.bytes(delivery.bytes), .integer(now.rawValue))
    }

    private static let setDelivered = Mutation(
        SessionStorage.subscription,
        .updateAny([SessionStorage.deliveredAt], where: [.equal(.id), .absent(SessionStorage.deliveredAt)]))

    /// Notes the first delivery of a subscription.
    static func noteDelivered(_ row: Int64, at now: Timestamp) -> Change { setDelivered(.integer(now.seconds), .integer(row)) }

    /// Reads of all tables that record deliveries. Any row means that the delivery was made before.
    private static func searches(for notification: PreparedMessage.Notification) -> [Read] {
        notification.names.flatMap { DeliveryStorage.search(for: $0) + [findSeen(.bytes($0.bytes))] }
    }

    /// Makes the notifications of a message for each device that wants it. Changes nothing, so it can run on any thread.
    ///
    /// - Parameters:
    ///   - message: a message admitted by `MessageRules`.
    ///   - server: the key of the storage server that reported it.
    ///   - mayEndOtherwise: `MessageRules.mayEndOtherwise`.
    ///   - isKnown: whether a delivery is known to have been made before. The store decides on the others later.
    ///   - admits: applies a rate limit to the notification of a row, before it is encrypted.
    func prepare(
        _ message: NotifyMessage, reportedBy server: [UInt8] = [], expires: Timestamp, mayEndOtherwise: Bool = false,
        by source: SessionDeliverySource, _ sodium: Sodium,
        at now: Timestamp, unless isKnown: @escaping @Sendable (DeliveryID) -> Bool = { _ in false },
        admits: @escaping @Sendable (_ row: Int64, DeliveryID) -> Bool = { _, _ in true }
    ) -> StoreCommand<PreparedMessage> {
        let read = Self.findOfAccount(
            .bytes(accountHash(message.account)), .integer(Self.oldestSignature(at: now.seconds)), limit: Self.deviceBound)
        let isEnded = message.expiresAt <= expires.milliseconds
        let ends = (mayEndOtherwise ? [isEnded, !isEnded] : [isEnded]).map { $0 ? message.expiresAt : nil }
        return .find(read) { rows in
            var (notifications, duplicates, refused): ([PreparedMessage.Notification], Int, Int) = ([], 0, 0)
            for row in rows {
                // A row that cannot be read or decrypted does not affect the others; `admin check` lists it.
                guard let name = try? row.bytes(1) else { continue }
                let names = ends.compactMap { DeliveryID(bytes: MessageRules.deliveryName(rowName: name, hash: message.hash, end: $0)) }
                guard let delivery = names.first else { continue }
                if names.contains(where: isKnown) {
                    duplicates += 1
                } else if let (record, service) = try? recipient(of: message, in: row) {
                    guard let id = try? row.integer(0), admits(id, delivery) else {
                        refused += 1
                        continue
                    }
                    let made = try? notification(
                        message, reportedBy: server, to: record, service, row: id, delivery, names.dropFirst().first, expires: expires,
                        by: source, sodium,
                        at: now)
                    if let made { notifications.append(made) }
                }
            }
            return .done(
                PreparedMessage(
                    message: message, expires: expires, notifications: notifications, duplicates: duplicates, refused: refused))
        }
    }

    /// - Parameter row: a result row of `findOfAccount`.
    /// - Returns: nil if the subscription does not want the message.
    private func recipient(of message: NotifyMessage, in row: Row) throws -> (SubscriptionRecord, PushService)? {
        let service = try PushService(stored: try row.integer(3))
        let record = try open(try row.bytes(4), named: try row.bytes(1), signedAt: try row.integer(2))
        return record.namespaces.contains(message.namespace) ? (record, service) : nil
    }

    private func notification(
        _ message: NotifyMessage, reportedBy server: [UInt8], to record: SubscriptionRecord, _ service: PushService, row id: Int64,
        _ delivery: DeliveryID, _ otherName: DeliveryID?, expires: Timestamp, by source: SessionDeliverySource, _ sodium: Sodium,
        at now: Timestamp
    ) throws -> PreparedMessage.Notification {
        let payload = SessionPayload(message, for: record, service, sodium)
        return PreparedMessage.Notification(
            row: id, account: message.account, server: server, signedAt: record.authority.signedAt, delivery: delivery,
            otherName: otherName, address: try source.address(of: record, service), content: source.content(payload, service),
            changes: [
                DeliveryStorage.enqueue(
                    delivery, for: Self.device(id), payload: payload.encoded(), expires: expires, markedAt: isShared ? nil : now, by: sealer
                )
            ] + (isShared ? [Self.insertNew(.bytes(delivery.bytes), .integer(now.rawValue))] : []), markedAt: isShared ? nil : now)
    }

    /// Puts the notifications of a message into the outbox, except those made before. Prepares the message again if a subscription has changed.
    ///
    /// - Parameters:
    ///   - prepared: the result of ``prepare(_:expires:by:_:at:unless:)``.
    ///   - admits: applies a rate limit to a notification. Called again if the store decides again.
    func notify(
        _ prepared: PreparedMessage, orElse prepareAgain: @escaping @Sendable () -> StoreCommand<PreparedMessage>,
        admits: @escaping @Sendable (PreparedMessage.Notification) -> Bool = { _ in true }
    ) -> StoreCommand<NotifiedMessage> {
        .read(Self.checks(of: [prepared])) { found in
            guard let decision = try Self.decide([prepared], found, admits)[0] else {
                return prepareAgain().then { notify($0, orElse: prepareAgain, admits: admits) }
            }
            return .apply(decision.admitted.flatMap(\.changes)) { Self.notified(decision, $0[...]) }
        }
    }

    /// As ``notify(_:orElse:admits:)``, for messages that succeed or fail together: a single read of the subscriptions of all messages is cheaper.
    ///
    /// - Parameters:
    ///   - prepared: the messages, in the order in which they are enqueued.
    ///   - admits: applies a rate limit to a notification.
    /// - Returns: The result of each message; nil if a subscription has changed since: nothing was stored, and the message must be prepared again.
    func notifyTogether(
        _ prepared: [PreparedMessage], admits: @escaping @Sendable (PreparedMessage.Notification) -> Bool = { _ in true }
    ) -> StoreCommand<[NotifiedMessage?]> {
        .read(Self.checks(of: prepared)) { found in
            let decisions = try Self.decide(prepared, found, admits)
            return .apply(decisions.flatMap { $0?.admitted.flatMap(\.changes) ?? [] }) { ids in
                var ids = ids[...]
                return decisions.map { decision in
                    guard let decision else { return nil }
                    defer { ids = ids.dropFirst(decision.admitted.reduce(0) { $0 + $1.changes.count }) }
                    return Self.notified(decision, ids)
                }
            }
        }
    }

    private typealias Decision = (message: PreparedMessage, admitted: [PreparedMessage.Notification], duplicates: Int)

    private static func checks(of prepared: [PreparedMessage]) -> [Read] {
        let all = prepared.flatMap(\.notifications)
        return [findVersions(ids: Set(all.map(\.row)).sorted())] + all.flatMap(searches)
    }

    /// - Parameter found: the results of ``checks(of:)``.
    /// - Returns: nil for a message with a subscription that has changed.
    private static func decide(
        _ prepared: [PreparedMessage], _ found: [[Row]], _ admits: (PreparedMessage.Notification) -> Bool
    ) throws -> [Decision?] {
        var versions: [Int64: Int64] = [:]
        for row in found[0] { versions[try row.integer(0)] = try row.integer(1) }
        var known: Set<DeliveryID> = []
        var searched = found.dropFirst()
        for notification in prepared.lazy.flatMap(\.notifications) {
            let count = searches(for: notification).count
            if searched.prefix(count).contains(where: { !$0.isEmpty }) { known.insert(notification.delivery) }
            searched = searched.dropFirst(count)
        }
        return prepared.map { message in
            let new = message.notifications.filter { !known.contains($0.delivery) }
            guard new.allSatisfy({ versions[$0.row] == $0.signedAt }) else { return nil }
            let admitted = new.filter(admits)
            // Duplicates within this batch are not found by the reads, which precede all changes.
            known.formUnion(admitted.lazy.flatMap(\.names))
            return (message, admitted, message.duplicates + message.notifications.count - new.count)
        }
    }

    /// - Parameter ids: of the rows that the changes of the notifications have inserted.
    private static func notified(_ decision: Decision, _ ids: ArraySlice<Int64>) -> NotifiedMessage {
        var ids = ids
        let queued = decision.admitted.compactMap { notification in
            defer { ids = ids.dropFirst(notification.changes.count) }
            return ids.first.map { id in
                let waiting = WaitingDelivery(
                    id: id, delivery: notification.delivery, device: device(notification.row), expires: decision.message.expires,
                    markedAt: notification.markedAt)
                return QueuedDelivery(waiting, to: notification.address, notification.content, times: decision.message.times)
            }
        }
        return NotifiedMessage(queued: queued, duplicates: decision.duplicates, isWanted: decision.message.isWanted)
    }

    static let seenRows = TimedRows(SessionStorage.seen, by: SessionStorage.at)
}

extension Timestamp {
    /// Unix seconds, rounded down.
    var seconds: Int64 { rawValue / 1_000_000_000 }
    /// The end of a Unix second.
    init(seconds: Int64) {
        self.init(rawValue: (seconds + 1) * 1_000_000_000 - 1)
    }

    /// Unix milliseconds, rounded down.
    var milliseconds: Int64 { rawValue / 1_000_000 }

    /// Saturates, because storage servers may send any time.
    init(milliseconds: Int64) {
        let (nanoseconds, isOverflow) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        self.init(rawValue: isOverflow ? (milliseconds < 0 ? .min : .max) : nanoseconds)
    }
}
