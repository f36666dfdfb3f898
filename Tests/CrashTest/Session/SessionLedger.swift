import Foundation
import Core
import SessionProtocol
import SessionStandIns
import Synchronization
import WakuCrypto

/// The requests of Session's clients and storage servers, the daemon's promises, and their outcomes: like ``Ledger`` for Status.
struct SessionLedger {
    /// A client's subscription request for one `sig_ts`. Each has its own key, which identifies it in notifications.
    struct Attempt {
        let namespaces: [Int16]
        let wantsData: Bool
        let key = SymmetricKey.random()
    }

    struct Device {
        let account: AccountID
        let service: PushService
        let token: String
        /// By `sig_ts`, each of which is used once; nil for an unsubscription.
        var attempts: [Int64: Attempt?] = [:]
        /// The highest `sig_ts` known to be on disk: acknowledged, or found there. 0 if there is none.
        var floor: Int64 = 0
        /// The highest `sig_ts` of an acknowledged unsubscription.
        var lastEnd: Int64 = 0

        var highest: Int64 { attempts.keys.max() ?? 0 }
        /// Whether no request is open, so that the stored state is known.
        var isCertain: Bool { floor == highest }
        /// The certain subscription; nil if there is none.
        var subscription: Attempt? { isCertain ? attempts[floor] ?? nil : nil }

        /// Whether it may have been unsubscribed since `signedAt`.
        func mayHaveEnded(since signedAt: Int64) -> Bool { attempts.contains { $0.key > signedAt && $0.value == nil } }
    }

    /// One request of a body.
    struct Part {
        let device: Int
        let signedAt: Int64
        /// Whether a subscription was stored before; nil when unknown.
        let wasSubscribed: Bool?
    }

    struct NoticeKey: Hashable {
        let device: Int
        let hash: String
    }

    /// A message for one device.
    struct Notice {
        /// The device's floor when the message was first reported.
        let firstFloor: Int64
        /// The device's `lastEnd` at that time.
        let firstEnd: Int64
        var history = DeliveryHistory()
    }

    struct Daemon {
        /// The last unsubscriptions of all devices when the daemon started.
        let ends: [Int64]
        var end: DaemonEnd?
    }

    /// Earlier than all signature times, Unix seconds: within a day, so that unsubscriptions are accepted.
    private let epoch = Int64(Date().timeIntervalSince1970) - 43_200

    var devices: [Device] = []
    private var deviceByToken: [String: Int] = [:]
    var notices: [NoticeKey: Notice] = [:]
    private(set) var messages: [String: NotifyMessage] = [:]
    private(set) var daemons: [Daemon] = []
    /// The last body of subscriptions of each client.
    var lastBodies: [Int: [Part]] = [:]
    private(set) var broken: [String] = []
    var figures = Figures()

    mutating func breaks(_ complaint: String) { broken.append(complaint) }
    func name(_ device: Int) -> String { "device \(device) (\(devices[device].service.rawValue))" }
    func name(_ key: NoticeKey) -> String { "message \(key.hash.prefix(8)) to \(name(key.device))" }

    // MARK: Daemons

    mutating func started() { daemons.append(Daemon(ends: devices.map(\.lastEnd))) }
    mutating func ended(_ daemon: Int, _ end: DaemonEnd) { daemons[daemon].end = end }

    // MARK: Subscriptions

    mutating func addDevice(of account: AccountID, _ service: PushService, token: String) -> Int {
        devices.append(Device(account: account, service: service, token: token))
        deviceByToken[token] = devices.count - 1
        return devices.count - 1
    }

    /// Returns the request for the client to sign.
    ///
    /// - Parameter attempt: nil for an unsubscription.
    mutating func attempt(_ attempt: Attempt?, for device: Int) -> Part {
        let signedAt = max(devices[device].highest, epoch) + 1
        let wasSubscribed = devices[device].isCertain ? devices[device].subscription != nil : nil
        devices[device].attempts[signedAt] = .some(attempt)
        return Part(device: device, signedAt: signedAt, wasSubscribed: wasSubscribed)
    }

    /// - Parameter isRepeated: whether it was sent before, and the answer was lost.
    mutating func answered(_ answer: SessionAnswer, to part: Part, isRepeated: Bool) {
        let name = "\(name(part.device)), request \(part.signedAt - epoch)"
        let isSubscription = (devices[part.device].attempts[part.signedAt] ?? nil) != nil
        let wasSubscribed = isRepeated ? nil : part.wasSubscribed
        switch answer {
        case .added where isSubscription:
            if wasSubscribed == true { breaks("\(name): added, though it was subscribed") }
        case .updated where isSubscription:
            if wasSubscribed == false { breaks("\(name): updated, though it was not subscribed") }
        case .removed(let isRemoved) where !isSubscription:
            if let wasSubscribed, wasSubscribed != isRemoved { breaks("\(name): removed \(isRemoved), subscribed before \(wasSubscribed)") }
        case .added, .updated, .removed, .failed:
            return breaks("\(name): answered \(answer)")
        }
        figures.add(isSubscription ? .sessionSubscribed : .sessionUnsubscribed)
        devices[part.device].floor = max(devices[part.device].floor, part.signedAt)
        // Where nothing was stored nothing is remembered: a subscription that was lost with a killed daemon may still be taken.
        if answer == .removed(true) { devices[part.device].lastEnd = max(devices[part.device].lastEnd, part.signedAt) }
    }

    // MARK: Messages

    /// Records that a message is about to be reported, for the first time or again.
    ///
    /// - Returns: The devices that must be notified of it unless further requests change their subscriptions.
    mutating func reporting(_ message: NotifyMessage) -> [NoticeKey] {
        figures.add(.sessionReported)
        messages[message.hash] = message
        var expected: [NoticeKey] = []
        for (index, device) in devices.enumerated() where device.account == message.account {
            let key = NoticeKey(device: index, hash: message.hash)
            if notices[key] == nil { notices[key] = Notice(firstFloor: device.floor, firstEnd: device.lastEnd) }
            if device.subscription?.namespaces.contains(message.namespace) == true { expected.append(key) }
        }
        return expected
    }

    /// Records a post of a notification to gorush, which will accept it.
    ///
    /// - Returns: The notice; nil when it was never requested.
    mutating func posted(_ post: SessionPost, by daemon: Int, _ sodium: Sodium) -> NoticeKey? {
        figures.add(.sessionPosts)
        guard let device = deviceByToken[post.token], daemons.indices.contains(daemon) else {
            breaks("posted to a device that nobody subscribed")
            return nil
        }
        for (signedAt, attempt) in devices[device].attempts.sorted(by: { $0.key > $1.key }) {
            guard let attempt, let received = try? ReceivedNotification(opening: post.payload, key: attempt.key, sodium: sodium) else {
                continue
            }
            let key = NoticeKey(device: device, hash: received.hash)
            check(received, key, sealedAt: signedAt, by: daemon)
            return key
        }
        breaks("\(name(device)): the notification is sealed with a key that it never had")
        return nil
    }

    private mutating func check(
        _ received: ReceivedNotification, _ key: NoticeKey, sealedAt signedAt: Int64, by daemon: Int
    ) {
        guard let message = messages[key.hash], message.account == received.account else {
            return breaks("\(name(key)): posted, but nobody reported it")
        }
        // A report may still be on its way when a device is added to its account.
        var notice = notices[key] ?? Notice(firstFloor: 0, firstEnd: 0)
        // Notifications that wait while their device subscribes again are sealed for the new key, with the content for the former subscription.
        let since = min(notice.firstFloor, signedAt)
        let asked = devices[key.device].attempts.filter { (since...signedAt).contains($0.key) }.compactMap(\.value)
        let wanted = asked.filter { $0.namespaces.contains(message.namespace) }
        if received.namespace != Int(message.namespace) || wanted.isEmpty {
            breaks("\(name(key)): posted for a namespace that the device does not want")
        } else if !wanted.contains(where: { received.data == Self.data(of: message, for: $0) }) {
            breaks("\(name(key)): the data is not the message's")
        }
        if signedAt < notice.firstFloor { breaks("\(name(key)): sealed for request \(signedAt - epoch), which was replaced before") }
        let ends = daemons[daemon].ends
        if signedAt < max(notice.firstEnd, key.device < ends.count ? ends[key.device] : 0) {
            breaks("\(name(key)): posted, though the device was unsubscribed before")
        }
        switch notice.history.post(by: daemon, at: .now, { daemons[$0].end }) {
        case nil: break
        case .allowed(let gap, let delay):
            let service = devices[key.device].service
            figures.noteDuplicate(between: gap, after: delay, showsOnce: service == .apns || service == .apnsSandbox)
        case .wrong(let complaint): breaks("\(name(key)): \(complaint)")
        }
        notices[key] = notice
    }

    private static func data(of message: NotifyMessage, for attempt: Attempt) -> [UInt8]? {
        guard attempt.wantsData, let data = message.data, data.count <= NotificationPayload.maximumDataByteCount else { return nil }
        return Array(data)
    }

    /// Records that gorush's reply is sent.
    mutating func replied(to key: NoticeKey, by daemon: Int, at now: ContinuousClock.Instant) {
        notices[key]?.history.reply(to: daemon, at: now)
    }
}

/// The ledger shared by all parts of a run.
final class SessionLedgerBox: Sendable {
    private let ledger = Mutex(SessionLedger())

    func withLock<Result: Sendable>(_ body: (inout SessionLedger) throws -> Result) rethrows -> Result {
        try ledger.withLock { try body(&$0) }
    }

    var copy: SessionLedger { ledger.withLock { $0 } }
}
