import Core
import StatusProtocol
import WakuCrypto

/// What was asked of the daemon, what it promised, and what came of it. Answers, posts and findings come in; what is not as promised is
/// noted in ``broken``.
///
/// Everything here holds while the load goes on: what is compared with a look at the daemon is what had been promised before that look
/// (`before`), and what had been asked when it was over.
struct Ledger {
    typealias Instant = ContinuousClock.Instant

    /// What a client asked to be registered under a version.
    struct Attempt {
        let deviceToken: DeviceToken
        /// nil: an unregistration.
        let accessToken: AccessToken?
    }

    struct Device {
        let key: RegistrationKey
        let registrant: PublicKey
        /// By version: each is used once.
        var attempts: [UInt64: Attempt] = [:]
        /// What clients of the library published, by version.
        var sealed: [UInt64: [UInt8]] = [:]
        /// The highest version that is known to be on disk: acknowledged, or found there. 0: none is.
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
        /// The device's floor when it was first asked for.
        let firstFloor: UInt64
        var history = DeliveryHistory()
    }

    struct Daemon {
        /// Of all devices, when it started.
        let floors: [UInt64]
        var end: DaemonEnd?
    }

    var devices: [Device] = []
    var notices: [DeliveryID: Notice] = [:]
    /// What was asked for last, oldest first.
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

    /// Returns the version that the client is to use.
    mutating func attempt(_ attempt: Attempt, for device: Int, step: UInt64) -> UInt64 {
        let version = devices[device].highestVersion + step
        devices[device].attempts[version] = attempt
        return version
    }

    /// A client of the library publishes a registration, for the first time or again.
    ///
    /// - Parameter sealed: As it is sent: a repetition is the same, byte for byte.
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

    /// It is on disk, or so it was said.
    mutating func acknowledged(_ version: UInt64, of device: Int) {
        let kind: Figures.Count =
            devices[device].attempts[version]?.accessToken == nil
            ? .acknowledgedUnregistration : devices[device].floor == 0 ? .acknowledgedRegistration : .acknowledgedUpdate
        figures.add(kind)
        devices[device].floor = max(devices[device].floor, version)
    }

    // MARK: Notifications

    /// What a client needs to have a device notified, as it knows the device.
    struct Target {
        let device: Int
        let key: RegistrationKey
        let accessToken: AccessToken
        let floor: UInt64
        let delivery: DeliveryID
        /// It was reported as delivered before.
        let isDelivered: Bool
    }

    /// A message is about to be asked for. Those of the devices that are registered are asked for.
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

    /// gorush was posted a notification, and will take it.
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

    /// gorush's reply leaves.
    mutating func replied(to delivery: DeliveryID, by daemon: Int, at now: Instant) {
        notices[delivery]?.history.reply(to: daemon, at: now)
    }

    func name(_ delivery: DeliveryID) -> String { "notification \(delivery.hex.prefix(12))" }
}
