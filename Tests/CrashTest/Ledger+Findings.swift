import Delivery
import Core
import StatusServer
import Storage
import StatusProtocol

/// The database's state of everything in a ledger.
struct Findings {
    var states: [StoredState?] = []
    var accepted: Set<DeliveryID> = []
    var waiting: Set<DeliveryID> = []

    init(of ledger: Ledger, in store: any Store) throws {
        let deliveries = Array(ledger.notices.keys)
        // In one snapshot.
        let found = try store.read(
            StoreCommand.each(ledger.devices.map { Registrations(store.sealer).state(of: $0.key) }).then { states in
                DeliveryStorage.waitingDeliveries().then { waiting in
                    DeliveryStorage.states(of: deliveries).map { (states, waiting, $0) }
                }
            })
        states = found.0
        waiting = Set(found.1.map(\.delivery))
        for (delivery, state) in zip(deliveries, found.2) where state == .accepted { accepted.insert(delivery) }
    }
}

extension Ledger {
    /// - Parameters:
    ///   - place: a description for messages.
    ///   - before: this ledger before the database was read.
    ///   - daemon: the daemon of the database.
    mutating func check(_ findings: Findings, _ place: String, before: Ledger, daemon: Int) {
        figures.add(.checkedRegistrations, before.devices.count { $0.floor > 0 && $0.isRegistered })
        figures.add(.checkedTombstones, before.devices.count { $0.floor > 0 && !$0.isRegistered })
        figures.add(.checkedNotifications, before.notices.values.count { $0.history.promise > .none })
        for (index, state) in findings.states.enumerated() { check(state, of: index, place, before.devices[index].floor) }
        for (delivery, notice) in before.notices { check(delivery, notice, findings, place, daemon) }
    }

    private mutating func check(_ state: StoredState?, of index: Int, _ place: String, _ floor: UInt64) {
        let (device, version) = (devices[index], state?.version ?? 0)
        let name = "\(device.key.installationID) \(place)"
        guard version >= floor else {
            breaks("\(name): version \(version), though \(floor) was acknowledged")
            return
        }
        guard let state else { return }
        guard let attempt = device.attempts[version] else {
            breaks("\(name): version \(version), which nobody asked for")
            return
        }
        let registration = state.registration
        if registration?.accessToken != attempt.accessToken || registration.map({ $0.deviceToken != attempt.deviceToken }) ?? false {
            breaks("\(name): version \(version) is not what was registered")
        }
        // Committed data survives the process: from now on it must be present.
        devices[index].floor = max(device.floor, version)
    }

    private mutating func check(_ delivery: DeliveryID, _ old: Notice, _ findings: Findings, _ place: String, _ daemon: Int) {
        guard var notice = notices[delivery] else { return }
        let complaints = notice.history.compare(
            isAccepted: findings.accepted.contains(delivery), isWaiting: findings.waiting.contains(delivery), before: old.history,
            daemon: (daemon, daemons[daemon].end), mayBeDropped: devices[notice.device].mayHaveEnded(since: notice.firstFloor))
        notices[delivery] = notice
        for complaint in complaints { breaks("\(name(delivery)) \(place): \(complaint)") }
    }

    /// Called after everything was posted.
    mutating func checkAllDelivered() {
        for (delivery, notice) in notices where notice.history.promise > .none && !notice.history.isPosted {
            if !devices[notice.device].mayHaveEnded(since: notice.firstFloor) { breaks("\(name(delivery)) was never posted") }
        }
    }
}
