import Delivery
import Core
import SessionProtocol
import SessionServer
import Storage
import WakuCrypto

/// The database's state of everything in a ledger.
struct SessionFindings {
    /// For each device; nil when it is not subscribed.
    private(set) var subscriptions: [(signedAt: Int64, record: SubscriptionRecord)?] = []
    private(set) var states: [SessionLedger.NoticeKey: DeliveryState] = [:]
    /// Deliveries in the outbox.
    private var waiting: Set<DeliveryID> = []
    private var deliveries: [SessionLedger.NoticeKey: DeliveryID] = [:]

    /// - Parameter keys: the notices to look up.
    init(of ledger: SessionLedger, _ keys: [SessionLedger.NoticeKey], in store: any Store) throws {
        let subscriptions = Subscriptions(store.sealer)
        let names = ledger.devices.map { device in
            subscriptions.name(of: device.account, SubscriberDevice(service: device.service, token: device.token))
        }
        for key in keys {
            deliveries[key] = DeliveryID(bytes: MessageRules.deliveryName(rowName: names[key.device], hash: key.hash))
        }
        let looked = keys.compactMap { key in deliveries[key].map { (key, $0) } }
        let accounts = Set(ledger.devices.map { subscriptions.accountHash($0.account) })
        // In one snapshot.
        let found = try store.read(
            StoreCommand.each(accounts.map { Subscriptions.ofAccount($0) }).then { rows in
                DeliveryStorage.waitingDeliveries().then { waiting in
                    DeliveryStorage.states(of: looked.map(\.1)).map { (rows.flatMap(\.self), waiting, $0) }
                }
            })
        let rows = Dictionary(uniqueKeysWithValues: found.0.map { ($0.name, $0) })
        self.subscriptions = try names.map { name in
            try rows[name].map { (signedAt: $0.signedAt, record: try subscriptions.open($0)) }
        }
        waiting = Set(found.1.map(\.delivery))
        for ((key, _), state) in zip(looked, found.2) { states[key] = state }
    }

    func isWaiting(_ key: SessionLedger.NoticeKey) -> Bool { deliveries[key].map(waiting.contains) ?? false }
}

extension SessionLedger {
    /// - Parameters:
    ///   - place: a description for messages.
    ///   - before: this ledger before the database was read.
    ///   - daemon: the daemon of the database.
    ///   - isDead: it has ended, and clients could send no requests since.
    mutating func check(_ findings: SessionFindings, _ place: String, before: SessionLedger, daemon: Int, isDead: Bool) {
        figures.add(.sessionCheckedSubscriptions, before.devices.count { $0.floor > 0 })
        figures.add(.sessionCheckedNotifications, before.notices.values.count { $0.history.promise > .none })
        for index in before.devices.indices { check(findings.subscriptions[index], of: index, place, before.devices[index]) }
        if isDead { for body in before.lastBodies.values { check(body, findings, place) } }
        for (key, old) in before.notices {
            guard var notice = notices[key] else { continue }
            let complaints = notice.history.compare(
                isAccepted: findings.states[key] == .accepted, isWaiting: findings.isWaiting(key), before: old.history,
                daemon: (daemon, daemons[daemon].end), mayBeDropped: devices[key.device].mayHaveEnded(since: notice.firstFloor))
            notices[key] = notice
            for complaint in complaints { breaks("\(name(key)) \(place): \(complaint)") }
        }
    }

    private mutating func check(
        _ found: (signedAt: Int64, record: SubscriptionRecord)?, of index: Int, _ place: String, _ before: Device
    ) {
        let name = "\(name(index)) \(place)"
        guard let found else {
            if (before.attempts[before.floor] ?? nil) != nil, !devices[index].mayHaveEnded(since: before.floor) {
                breaks("\(name): not subscribed, though that was acknowledged")
            }
            return
        }
        guard found.signedAt >= before.floor, let attempt = devices[index].attempts[found.signedAt] ?? nil else {
            return breaks("\(name): subscribed by a request that was replaced or never sent")
        }
        let record = found.record
        let isSame =
            record.namespaces == attempt.namespaces && record.wantsData == attempt.wantsData
            && record.encryptionKey.secret.withBytes { Array($0) } == attempt.key.secret.withBytes { Array($0) }
        if !isSame { breaks("\(name): the subscription is not what was asked for") }
        // Committed data survives the process: from now on it must be present.
        devices[index].floor = max(devices[index].floor, found.signedAt)
    }

    /// A body is stored as a whole, or not at all.
    private mutating func check(_ body: [Part], _ findings: SessionFindings, _ place: String) {
        let kept = body.count { findings.subscriptions[$0.device].map(\.signedAt) == $0.signedAt }
        let isUnchanged = body.allSatisfy { devices[$0.device].highest == $0.signedAt }
        if isUnchanged, kept > 0, kept < body.count { breaks("\(place): \(kept) of the \(body.count) subscriptions of a body are kept") }
    }

    /// Called after everything was posted.
    mutating func checkAllDelivered() {
        for (key, notice) in notices where notice.history.promise > .none && !notice.history.isPosted {
            if !devices[key.device].mayHaveEnded(since: notice.firstFloor) { breaks("\(name(key)) was never posted") }
        }
    }
}
