import StatusProtocol
import Core
import WakuCrypto

/// Requests notifications for devices, each from one server, falling back to another when one does not answer. ``MessageRecord/Device`` shows the
/// states.
struct NotificationMachine: Sendable {
    static let messageLife = Duration.seconds(600)
    static let outcomeLife = Duration.seconds(24 * 3600)
    static let answerDeadline = Duration.seconds(3)
    /// The delay before the same server is asked again after INTERNAL_ERROR; it retries by itself.
    static let askAgainDelay = Duration.seconds(3)
    /// How long a message waits for look-ups and queries when devices to notify are known.
    static let sourceLimit = Duration.seconds(3)
    static let pauseBase = Duration.seconds(2)
    static let roundLimit = 4
    static let defaultDeviceLimit = 3
    static let maximumDeviceLimit = 5
    /// The maximum number of devices in a request. Servers drop those over 3 MiB, and the deployed protocol repeats the content of up to 16 KiB for
    /// each device.
    static let requestDeviceLimit = 100

    typealias Ticket = UInt64

    enum Action: Hashable, Sendable {
        case request(Ticket, server: PublicKey, NotificationRequest)
        /// No recent information about the registrant.
        case query(PublicKey)
        case report(PushClientEvent)
    }

    struct Request: Sendable {
        let messageID: [UInt8]
        let server: PublicKey
        /// Each device with the token in its request.
        let devices: [DeviceID: AccessToken]
        let begun: Timestamp
    }

    struct DeviceID: Hashable, Sendable {
        let registrant: PublicKey
        let installationID: InstallationID
    }

    /// A device that a server refused, with the token of the request.
    struct Refusal: Sendable {
        let device: DeviceID
        let server: PublicKey
        let token: AccessToken
        /// The server does not have the device. Otherwise it refused the token, or did not tell.
        let isAbsent: Bool
    }

    /// The client's knowledge that messages depend on.
    struct Surroundings {
        let directory: Directory
        /// This device, which is never notified.
        let own: (registrant: PublicKey, installationID: InstallationID)
        /// Whether servers are known that can be queried about any registrant.
        let listsServers: Bool
        let queries: QueryTable

        func isAskable(_ registrant: PublicKey) -> Bool {
            listsServers || !directory.servers(of: registrant).isEmpty
        }

        /// Whether no advertisement of the registrant is known or can be looked up, and no server can be queried.
        func isServerless(_ registrant: PublicKey) -> Bool {
            directory.isLookedUp(registrant) && !isAskable(registrant)
        }
    }

    /// Whether a registrant is queried only once per message after a server refused a token, instead of once per round.
    let queriesOnceAfterRefusal: Bool

    /// The number of a registrant's devices to notify when the message names none.
    var deviceLimit = Self.defaultDeviceLimit {
        didSet { deviceLimit = min(max(deviceLimit, 1), Self.maximumDeviceLimit) }
    }

    /// How often ended messages are searched for old ones.
    private static let forgettingPeriod = Duration.seconds(60)

    private(set) var messages: [[UInt8]: MessageRecord] = [:]
    var requests: [Ticket: Request] = [:]
    var nextTicket: Ticket = 1
    var actions: [Action] = []
    private(set) var changed: Set<[UInt8]> = []
    var active = ActiveMessages()
    /// ``Surroundings/listsServers`` of the last ``wake(_:at:jitter:)``.
    private var listedServers = false
    private var forgotAt: Timestamp?

    init(restoring records: [MessageRecord] = [], queriesOnceAfterRefusal: Bool = false) {
        self.queriesOnceAfterRefusal = queriesOnceAfterRefusal
        for var record in records {
            record.resume()
            messages[record.messageID] = record
            if !record.isFinished { active.insert(record) }
        }
    }

    /// In a second run of the same process: restarts the requests and queries of the first run.
    mutating func resume() {
        for id in active.ids {
            guard var record = messages[id] else { continue }
            record.resume()
            guard record != messages[id] else { continue }
            messages[id] = record
            changed.insert(id)
            active.noteChange(of: record)
        }
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    mutating func takeChanges() -> Set<[UInt8]> {
        defer { changed = [] }
        return changed
    }

    // MARK: Requests

    /// Starts or resumes a message: devices already notified are not notified again; devices that were given up are retried.
    ///
    /// - Parameters:
    ///   - chat: The hash of its chat, in the protocol's form.
    ///   - author: The hash of its author; empty if the protocol has none.
    ///   - own: This device, which is never notified.
    mutating func notify(
        _ message: OutgoingNotification, chat: [UInt8], author: [UInt8], own: (PublicKey, InstallationID), at now: Timestamp
    ) {
        forgetOldOutcomes(at: now)
        var record =
            messages[message.messageID].flatMap { isOld($0, at: now) ? nil : $0 }
            ?? MessageRecord(
                messageID: message.messageID, chatHash: chat, authorHash: author,
                kind: message.kind.rawValue, content: message.content, begun: now, recipients: [])
        let wasFinished = record.isFinished
        record.failed = []
        for index in record.devices.indices {
            if case .done(.gaveUp) = record.devices[index].state {
                record.devices[index] = .init(
                    registrant: record.devices[index].registrant, installationID: record.devices[index].installationID)
            }
        }
        for recipient in message.recipients {
            var known = Set(record.devices.filter { $0.registrant == recipient.registrant }.map(\.installationID))
            let wanted = recipient.installations.filter { !(recipient.registrant == own.0 && $0 == own.1) }
            for id in wanted where known.insert(id).inserted {
                record.devices.append(.init(registrant: recipient.registrant, installationID: id))
            }
            guard recipient.installations.isEmpty, known.isEmpty else { continue }
            record.recipients.removeAll { $0.registrant == recipient.registrant }
            record.recipients.append(.init(registrant: recipient.registrant, installations: [], search: .init()))
        }
        if wasFinished, !record.isFinished {
            record.content = message.content
            record.begun = now
        }
        messages[message.messageID] = record
        active.insert(record)
        changed.insert(message.messageID)
    }

    /// Stops sending for the message. Devices already notified stay so.
    mutating func cancel(_ messageID: [UInt8]) {
        giveUp(messageID, .cancelled)
    }

    mutating func cancelAll() {
        for id in active.sorted { giveUp(id, .cancelled) }
    }

    mutating func forget(_ registrant: PublicKey) {
        for id in active.ids(for: registrant) { giveUp(id, .cancelled, for: registrant) }
    }

    mutating func forgetOldOutcomes(at now: Timestamp) {
        guard forgotAt.map({ now.since($0) >= Self.forgettingPeriod }) ?? true else { return }
        forgotAt = now
        for (id, record) in messages where isOld(record, at: now) {
            messages[id] = nil
            changed.insert(id)
        }
        requests = requests.filter { now.since($0.value.begun) < Self.messageLife }
    }

    private func isOld(_ record: MessageRecord, at now: Timestamp) -> Bool {
        record.isFinished && now.since(record.begun) >= Self.outcomeLife
    }

    // MARK: Time

    var isActive: Bool { !active.isEmpty }

    /// Whether a message is not finished for the registrant.
    func isUnfinished(_ registrant: PublicKey) -> Bool {
        active.ids(for: registrant).contains { id in
            guard let record = messages[id] else { return false }
            return record.recipients.contains { $0.registrant == registrant && $0.search != nil }
                || record.devices.contains { $0.registrant == registrant && !$0.isDone }
        }
    }

    var nextWakeUp: Timestamp? { active.nextWakeUp }

    /// Goes on with the messages that can: something that they wait for happened, or their time has come.
    mutating func wake(_ client: Surroundings, at now: Timestamp, jitter: inout Jitter) {
        if client.listsServers != listedServers { active.noteNews() }
        listedServers = client.listsServers
        for id in active.takeDue(at: now) {
            advance(id, client, at: now, jitter: &jitter)
            if let record = messages[id] { active.wait(record) }
        }
    }

    // MARK: Progress

    /// Does everything possible for a message now.
    ///
    /// - Parameter jitter: Random numbers from 0 to 1.
    private mutating func advance(_ id: [UInt8], _ client: Surroundings, at now: Timestamp, jitter: inout Jitter) {
        guard var record = messages[id] else { return }
        guard now.since(record.begun) < Self.messageLife else { return giveUp(id, .expired) }
        let before = record
        for index in record.recipients.indices {
            search(&record, index, client, at: now, jitter: &jitter)
        }
        var assigned: [PublicKey: [Int]] = [:]
        for index in record.devices.indices {
            let registrant = record.devices[index].registrant
            let isResting = if case .resting = record.devices[index].state { true } else { false }
            record.devices[index].noteTime(at: now, isQuerying: client.queries.isUnderWay(about: registrant))
            guard record.devices[index].state == .ready else { continue }
            // Every known server failed for a round: a server not known yet may have the device.
            if isResting, client.isAskable(registrant), record.devices[index].wasRefused != true { actions.append(.query(registrant)) }
            if let server = nextServer(for: &record.devices[index], client, assigned: assigned, at: now, jitter: &jitter) {
                assigned[server, default: []].append(index)
            }
        }
        for (server, indices) in assigned.sorted(by: { $0.key.uncompressed.lexicographicallyPrecedes($1.key.uncompressed) }) {
            for indices in indices.chunks(of: Self.requestDeviceLimit) { request(&record, indices, by: server, client.directory, at: now) }
        }
        store(record, before)
    }

    mutating func store(_ record: MessageRecord, _ before: MessageRecord) {
        var record = record
        let id = record.messageID
        for (index, device) in record.devices.enumerated() {
            guard case .done(let outcome) = device.state else { continue }
            let previous = index < before.devices.count ? before.devices[index].state : .ready
            guard previous != device.state else { continue }
            report(id, DeviceOutcome(registrant: device.registrant, installationID: device.installationID, result: outcome.result))
        }
        for failed in record.failed where !before.failed.contains(failed) {
            report(id, DeviceOutcome(registrant: failed.registrant, installationID: nil, result: .gaveUp(failed.reason)))
        }
        if record.isFinished, active.contains(id) {
            active.remove(record)
            record.content = []
        }
        guard record != messages[id] else { return }
        messages[id] = record
        changed.insert(id)
        if active.contains(id) { active.noteChange(of: record) }
    }

    private mutating func report(_ id: [UInt8], _ outcome: DeviceOutcome) {
        if case .notified = outcome.result {
            actions.append(.report(.notified(messageID: id, outcome)))
        } else {
            actions.append(.report(.gaveUp(messageID: id, outcome)))
        }
    }

    /// - Parameter registrant: nil for all recipients.
    private mutating func giveUp(_ id: [UInt8], _ reason: DeviceOutcome.GiveUpReason, for registrant: PublicKey? = nil) {
        guard var record = messages[id], active.contains(id) else { return }
        let before = record
        for (index, device) in record.devices.enumerated() where !device.isDone && device.registrant == registrant ?? device.registrant {
            record.devices[index].state = .done(.gaveUp(reason))
        }
        for (index, recipient) in record.recipients.enumerated()
        where recipient.search != nil && recipient.registrant == registrant ?? recipient.registrant {
            record.recipients[index].search = nil
            record.failed.append(.init(registrant: recipient.registrant, reason: reason))
        }
        store(record, before)
    }
}

/// A request to one server, independent of the protocol.
struct NotificationRequest: Hashable, Sendable {
    struct Entry: Hashable, Sendable {
        let device: NotificationMachine.DeviceID
        let token: AccessToken
    }

    let messageID: [UInt8]
    let chatHash: [UInt8]
    let authorHash: [UInt8]
    let kind: Int32
    let content: [UInt8]
    let entries: [Entry]
}

/// A server's answer about a device of the request.
enum NotificationVerdict: Hashable, Sendable {
    case notified
    /// The server refused the token. In version 0.1 it may not know the device.
    case tokenRefused
    /// The server does not know the device.
    case notRegistered
    /// The server failed, and retries by itself.
    case failed
    case otherError
}
