import Delivery
import PushTypes
import SessionProtocol
import SessionRules
import Sodium
import Storage
import Waku

/// What a message came to.
struct NotifiedMessage: Sendable {
    /// Put into the outbox, in the order of their rows.
    var queued: [QueuedDelivery] = []
    /// Deliveries that were made before: another storage server reported the same message.
    var duplicates = 0
    /// Whether any subscription of the account wants the message's namespace.
    var isWanted = false
}

extension Subscriptions {
    /// More than the devices of an account; it bounds what a message reads if the limit was lowered.
    private static let deviceBound = 10_000

    private static let findOfAccount = Query(
        SessionStorage.subscription,
        [.id, SessionStorage.name, SessionStorage.signedAt, SessionStorage.service, SessionStorage.sealed],
        where: [.equal(SessionStorage.account), .atLeast(SessionStorage.signedAt)], order: [.ascending(.id)])
    private static let findSeen = Query(SessionStorage.seen, [.id], where: [.equal(SessionStorage.delivery)])
    private static let insertSeen = Mutation(SessionStorage.seen, .insertOrIgnore([SessionStorage.delivery, SessionStorage.at]))

    /// A subscription that wants a message.
    private struct Recipient: Sendable {
        let row: Int64
        let service: PushService
        let record: SubscriptionRecord
        let delivery: DeliveryID
    }

    /// Puts a notification for each device that wants the message into the outbox, sealed for it, unless that was done before.
    ///
    /// - Parameters:
    ///   - message: admitted by `MessageRules`.
    ///   - expires: when its notifications are given up.
    ///   - source: makes addresses and contents.
    ///   - sodium: seals payloads.
    ///   - now: the time.
    ///   - admits: whether a subscription's row may be notified now. Counts against a rate limit.
    func notify(
        _ message: NotifyMessage, expires: Timestamp, by source: SessionDeliverySource, _ sodium: Sodium, at now: Timestamp,
        admits: @escaping @Sendable (Int64) -> Bool = { _ in true }
    ) -> StoreCommand<NotifiedMessage> {
        let read = Self.findOfAccount(
            .bytes(accountHash(message.account)), .integer(Self.oldestSignature(at: now.seconds)), limit: Self.deviceBound)
        return .find(read) { rows in
            var recipients: [Recipient] = []
            for row in rows {
                // One that cannot be read or opened takes no other with it; `admin check` lists it.
                guard let id = try? row.integer(0), let name = try? row.bytes(1),
                    let record = try? open(try row.bytes(4), named: name, signedAt: try row.integer(2)),
                    let service = try? PushService(stored: try row.integer(3)),
                    MessageRules.wants(record.namespaces, message.namespace),
                    let delivery = DeliveryID(bytes: MessageRules.deliveryName(rowName: name, hash: message.hash))
                else { continue }
                recipients.append(Recipient(row: id, service: service, record: record, delivery: delivery))
            }
            guard !recipients.isEmpty else { return .done(NotifiedMessage()) }
            return .read(recipients.map { Self.findSeen(.bytes($0.delivery.bytes)) }) { [recipients] seen in
                let new = zip(recipients, seen).filter(\.1.isEmpty).map(\.0)
                return queue(message, for: new.filter { admits($0.row) }, expires: expires, by: source, sodium, at: now).map { queued in
                    NotifiedMessage(queued: queued, duplicates: recipients.count - new.count, isWanted: true)
                }
            }
        }
    }

    private func queue(
        _ message: NotifyMessage, for recipients: [Recipient], expires: Timestamp, by source: SessionDeliverySource, _ sodium: Sodium,
        at now: Timestamp
    ) -> StoreCommand<[QueuedDelivery]> {
        let payloads = recipients.map { SessionPayload(message, for: $0.record, sodium) }
        let changes = zip(recipients, payloads).flatMap { recipient, payload in
            [
                DeliveryStorage.enqueue(
                    recipient.delivery, for: Self.device(recipient.row), payload: payload.encoded(), expires: expires, by: sealer),
                Self.insertSeen(.bytes(recipient.delivery.bytes), .integer(now.rawValue)),
            ]
        }
        return .apply(changes) { ids in
            zip(ids, zip(recipients, payloads)).map { id, one in
                let (recipient, payload) = one
                let waiting = WaitingDelivery(
                    id: id, delivery: recipient.delivery, device: Self.device(recipient.row), expires: expires)
                let address = source.address(of: recipient.record, recipient.service)
                return QueuedDelivery(
                    PostableDelivery(waiting, to: address, source.content(payload, recipient.service)), times: nil)
            }
        }
    }

    private static let seenRows = TimedRows(SessionStorage.seen, by: SessionStorage.at)

    /// Forgets deliveries from before `cutoff`, and the oldest beyond `limit`.
    static func forgetSeen(before cutoff: Timestamp, keeping limit: Int) -> StoreCommand<Void> {
        seenRows.prune(before: cutoff.rawValue, keeping: limit)
    }
}

extension Timestamp {
    /// Unix seconds, rounded down.
    var seconds: Int64 { rawValue / 1_000_000_000 }
    /// Unix milliseconds, rounded down.
    var milliseconds: Int64 { rawValue / 1_000_000 }

    /// Saturates: storage servers choose their times freely.
    init(milliseconds: Int64) {
        let (nanoseconds, isOverflow) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        self.init(rawValue: isOverflow ? (milliseconds < 0 ? .min : .max) : nanoseconds)
    }
}
