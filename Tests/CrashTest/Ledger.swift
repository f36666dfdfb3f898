import Core
import StatusProtocol
import WakuCrypto

/// The requests to the daemon, its promises, and their outcomes. Answers, posts and findings come in; violations are
/// recorded in ``broken``.
///
/// It is valid under load: a check compares the daemon's state with the promises made before it (`before`), and with
/// the requests made until its end.
struct Ledger {
    typealias Instant = ContinuousClock.Instant

    /// A client's request for one version.
    struct Attempt {
        let deviceToken: DeviceToken
        /// nil for an unregistration.
        let accessToken: AccessToken?
    }

    struct Device {
        let key: RegistrationKey
        let registrant: PublicKey
        /// By version; each version is used once.
        var attempts: [UInt64: Attempt] = [:]
        /// The bytes published by clients of the library, by version.
        var sealed: [UInt64: [UInt8]] = [:]
        /// The highest version known to be on disk: acknowledged, or found there. 0 if there is none.
        var floor: UInt64 = 0

        var highestVersion: UInt64 { attempts.keys.max() ?? 0 }
        var isRegistered: Bool { attempts[floor]?.accessToken != nil }

        /// Whether it may have been unregistered since `version`.
        func mayHaveEnded(since version: UInt64) -> Bool {
            attempts.contains { $0.key > version && $0.value.accessToken == nil }
        }
    }

    /// A message for one device.
    struct Notice {
        let messageID: [UInt8]
        let device: Int
        /// The device's floor at the first request.
        let firstFloor: UInt64
        var history = DeliveryHistory()
    }

    struct Daemon {
        /// The floors of all devices when the daemon started.
        let floors: [UInt64]
        var end: DaemonEnd?
    }

    var devices: [Device] = []
    var notices: [DeliveryID: Notice] = [:]
    /// The last messages requested, oldest first.
    private(set) var recentMessages: [(id: [UInt8], devices: [Int])] = []
    private(set) var daemons: [Daemon] = []
    private(set) var broken: [String] = []
    var figures = Figures()
    /// A node may be without its database: then INTERNAL_ERROR promises nothing.
    var mayFailToStore = false

    static let recentMessageLimit = 200

    mutating func breaks(_ what: String) {
        broken.append(what)
    }

    // MARK: Daemons

    /// Returns its number.
    mutating func started() -> Int {
        daemons.append(Daemon(floors: devices.map(\.floor)))
        return daemons.count - 1
    }

    mutating func ended(_ daemon: Int, _ end: DaemonEnd) {
        daemons[daemon].end = end
    }

    // MARK: Registrations

    mutating func addDevice(_ key: RegistrationKey, of registrant: PublicKey) -> Int {
        devices.append(Device(key: key, registrant: registrant))
        return devices.count - 1
    }

    /// Returns the version for the client to use.
    mutating func attempt(_ attempt: Attempt, for device: Int, step: UInt64) -> UInt64 {
        let version = devices[device].highestVersion + step
        devices[device].attempts[version] = attempt
        return version
    }

    /// Records that a client of the library publishes a registration, for the first time or again.
    ///
    /// - Parameter sealed: The sent bytes; repetitions are the same byte for byte.
    mutating func published(_ attempt: Attempt, version: UInt64, sealed: [UInt8], for device: Int) {
        let name = "\(devices[device].key.installationID) version \(version)"
        if devices[device].attempts[version] != nil {
            if devices[device].sealed[version] != sealed { breaks("\(name) is published again with other content") }
            figures.add(.repeatedByClient)
        } else if version < devices[device].highestVersion {
            breaks("\(name) is published after version \(devices[device].highestVersion)")
        }
        devices[device].attempts[version] = attempt
        devices[device].sealed[version] = sealed
    }

    /// Records that the daemon acknowledged storing the version.
    mutating func acknowledged(_ version: UInt64, of device: Int) {
        let kind: Figures.Count =
            devices[device].attempts[version]?.accessToken == nil
            ? .acknowledgedUnregistration : devices[device].floor == 0 ? .acknowledgedRegistration : .acknowledgedUpdate
        figures.add(kind)
        devices[device].floor = max(devices[device].floor, version)
    }

    // MARK: Notifications

    /// A client's view of a device, as needed for a notification request.
    struct Target {
        let device: Int
        let key: RegistrationKey
        let accessToken: AccessToken
        let floor: UInt64
        let delivery: DeliveryID
        /// Whether it was already reported as delivered.
        let isDelivered: Bool
    }

    /// Records a request for a message. Only registered devices are requested.
    mutating func ask(_ messageID: [UInt8], for candidates: [Int]) -> [Target] {
        let targets = candidates.compactMap { index -> Target? in
            let device = devices[index]
            guard let accessToken = device.attempts[device.floor]?.accessToken else { return nil }
            let delivery = DeliveryID(messageID: messageID, key: device.key)
            return Target(
                device: index, key: device.key, accessToken: accessToken, floor: device.floor, delivery: delivery,
                isDelivered: notices[delivery]?.history.promise == .delivered)
        }
        for target in targets where notices[target.delivery] == nil {
            notices[target.delivery] = Notice(messageID: messageID, device: target.device, firstFloor: target.floor)
        }
        if !targets.isEmpty {
            recentMessages.append((messageID, targets.map(\.device)))
            if recentMessages.count > Self.recentMessageLimit { recentMessages.removeFirst() }
        }
        return targets
    }

    mutating func reported(_ error: PushNotificationReport.ErrorType?, on target: Target) {
        guard var notice = notices[target.delivery] else { return }
        let device = devices[target.device]
        switch error {
        case nil:
            figures.add(.reportedDelivered)
            if !notice.history.isPosted { breaks("\(name(target.delivery)) reported as delivered, but gorush did not get it") }
            notice.history.promise = .delivered
        case .internalError:
            figures.add(.reportedKept)
            guard !mayFailToStore else { break }
            if target.isDelivered { breaks("\(name(target.delivery)) reported as delivered, and INTERNAL_ERROR when asked again") }
            notice.history.promise = max(notice.history.promise, .kept)
        case .wrongToken:
            let mayHaveChanged = device.attempts.contains { $0.key > target.floor && $0.value.accessToken != target.accessToken }
            if !mayHaveChanged { breaks("\(name(target.delivery)) WRONG_TOKEN with the acknowledged token") }
        case .notRegistered:
            if !device.mayHaveEnded(since: target.floor) { breaks("\(name(target.delivery)) NOT_REGISTERED, though it was acknowledged") }
        case .unknown:
            breaks("\(name(target.delivery)) UNKNOWN_ERROR_TYPE")
        }
        notices[target.delivery] = notice
    }

    /// Records that a notification was posted to gorush, which will accept it.
    ///
    /// - Parameter showsOnce: a repetition replaces the first on the device.
    mutating func posted(_ delivery: DeliveryID, token: String, showsOnce: Bool, by daemon: Int, at now: Instant) {
        figures.add(.posts)
        guard var notice = notices[delivery], daemons.indices.contains(daemon) else {
            breaks("\(name(delivery)) posted, but nobody asked for it")
            return
        }
        defer { notices[delivery] = notice }
        let device = devices[notice.device]
        let floor = max(notice.firstFloor, notice.device < daemons[daemon].floors.count ? daemons[daemon].floors[notice.device] : 0)
        if !device.attempts.contains(where: { $0.key >= floor && $0.value.accessToken != nil && $0.value.deviceToken.revealed == token }) {
            breaks("\(name(delivery)) posted to a device token older than version \(floor), which was acknowledged")
        }
        switch notice.history.post(by: daemon, at: now, { daemons[$0].end }) {
        case nil: break
        case .allowed(let gap, let delay): figures.noteDuplicate(between: gap, after: delay, showsOnce: showsOnce)
        case .wrong(let complaint): breaks("\(name(delivery)) \(complaint)")
        }
    }

    /// Records that gorush's reply is sent.
    mutating func replied(to delivery: DeliveryID, by daemon: Int, at now: Instant) {
        notices[delivery]?.history.reply(to: daemon, at: now)
    }

    func name(_ delivery: DeliveryID) -> String { "notification \(delivery.hex.prefix(12))" }
}
