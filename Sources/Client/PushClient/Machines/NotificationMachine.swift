import StatusProtocol
import Core
import Waku
import WakuCrypto

/// Has devices notified of messages, each by one server, by another where that one does not answer. ``MessageRecord/Device`` has the picture.
struct NotificationMachine: Sendable {
    static let messageLife = Duration.seconds(600)
    static let outcomeLife = Duration.seconds(24 * 3600)
    static let answerDeadline = Duration.seconds(3)
    /// The server goes on by itself: it is asked how that went.
    static let askAgainDelay = Duration.seconds(3)
    static let pauseBase = Duration.seconds(2)
    static let roundLimit = 4
    static let defaultDeviceLimit = 3
    static let maximumDeviceLimit = 5

    typealias Ticket = UInt64

    enum Action: Hashable, Sendable {
        case request(Ticket, server: PublicKey, NotificationRequest)
        /// Nothing fresh is known of the registrant.
        case query(PublicKey)
        case report(PushClientEvent)
        case finished(messageID: [UInt8])
    }

    struct Request: Sendable {
        let messageID: [UInt8]
        let server: PublicKey
        /// With the token that each was asked with.
        let devices: [DeviceID: AccessToken]
        let begun: Timestamp
    }

    struct DeviceID: Hashable, Sendable {
        let registrant: PublicKey
        let installationID: InstallationID
    }

    /// Whether a registrant is queried only once for a message after a server refused a token, instead of once a round.
    let queriesOnceAfterRefusal: Bool

    /// How many devices of a registrant are notified when the message does not name them.
    var deviceLimit = Self.defaultDeviceLimit {
        didSet { deviceLimit = min(max(deviceLimit, 1), Self.maximumDeviceLimit) }
    }

    private(set) var messages: [[UInt8]: MessageRecord] = [:]
    var requests: [Ticket: Request] = [:]
    var nextTicket: Ticket = 1
    var actions: [Action] = []
    private(set) var changed: Set<[UInt8]> = []
    /// Messages with something left to do.
    private(set) var active: Set<[UInt8]> = []

    /// Set by whoever owns the machine: registrants that a query is on its way about.
    var queried: Set<PublicKey> = []

    init(restoring records: [MessageRecord] = [], queriesOnceAfterRefusal: Bool = false) {
        self.queriesOnceAfterRefusal = queriesOnceAfterRefusal
        for var record in records {
            record.resume()
            messages[record.messageID] = record
            if !record.isFinished { active.insert(record.messageID) }
        }
    }

    /// In a second run of the same process: requests and queries of the first one are begun anew.
    mutating func resume() {
        for id in active {
            guard var record = messages[id] else { continue }
            record.resume()
            guard record != messages[id] else { continue }
            messages[id] = record
            changed.insert(id)
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

    // MARK: What is wanted

    /// Begins with a message, or goes on with it: devices that were notified are not notified again, those that were given up are tried anew.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - chat: The hash of its chat, as the protocol makes it.
    ///   - author: The hash of its author; empty where the protocol has none.
    ///   - own: This very device, which is never notified.
    ///   - now: The client's time.
    mutating func notify(
        _ message: OutgoingNotification, chat: [UInt8], author: [UInt8], own: (PublicKey, InstallationID), at now: Timestamp
    ) {
        forgetOldOutcomes(at: now)
        var record =
            messages[message.messageID]
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
            let known = record.devices.filter { $0.registrant == recipient.registrant }.map(\.installationID)
            let wanted = recipient.installations.filter { !(recipient.registrant == own.0 && $0 == own.1) }
            for id in wanted where !known.contains(id) {
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
        active.insert(message.messageID)
        changed.insert(message.messageID)
    }

    /// Nothing more is sent for the message. Devices that were notified stay so.
    mutating func cancel(_ messageID: [UInt8]) {
        giveUp(messageID, .cancelled)
    }

    /// Nothing more is sent for any message.
    mutating func cancelAll() {
        for id in active.sorted(by: { $0.lexicographicallyPrecedes($1) }) { giveUp(id, .cancelled) }
    }

    private mutating func forgetOldOutcomes(at now: Timestamp) {
        for (id, record) in messages where record.isFinished && now.since(record.begun) >= Self.outcomeLife {
            messages[id] = nil
            changed.insert(id)
        }
        requests = requests.filter { now.since($0.value.begun) < Self.messageLife }
    }

    // MARK: Time

    /// Whether a message still has something to do.
    var isActive: Bool { !active.isEmpty }

    var nextWakeUp: Timestamp? {
        var earliest: Timestamp?
        for id in active {
            guard let record = messages[id] else { continue }
            var next = record.begun + Self.messageLife
            for device in record.devices {
                switch device.state {
                case .asking(_, let deadline): if let deadline { next = min(next, deadline.time) }
                case .askingAgain(_, let at): next = min(next, at.time)
                case .resting(let until): next = min(next, until.time)
                case .ready, .querying, .done: break
                }
            }
            for recipient in record.recipients {
                if let until = recipient.search?.restsUntil { next = min(next, until.time) }
            }
            earliest = min(earliest ?? next, next)
        }
        return earliest
    }

    mutating func wake(
        _ directory: some DeviceDirectory, askable: (PublicKey) -> Bool, own: (PublicKey, InstallationID), at now: Timestamp,
        jitter: inout Jitter
    ) {
        for id in active.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            advance(id, directory, askable: askable, own: own, at: now, jitter: &jitter)
        }
    }

    // MARK: Moving on

    /// Does all that can be done for a message now.
    ///
    /// - Parameters:
    ///   - id: The message's.
    ///   - directory: Who can be notified by which server.
    ///   - askable: Whether any server can be asked about the registrant.
    ///   - own: This very device, which is never notified.
    ///   - now: The client's time.
    ///   - jitter: Random numbers from 0 to 1.
    private mutating func advance(
        _ id: [UInt8], _ directory: some DeviceDirectory, askable: (PublicKey) -> Bool, own: (PublicKey, InstallationID), at now: Timestamp,
        jitter: inout Jitter
    ) {
        guard var record = messages[id] else { return }
        guard now.since(record.begun) < Self.messageLife else { return giveUp(id, .expired) }
        let before = record
        for index in record.recipients.indices {
            search(&record, index, directory, askable: askable, own: own, at: now, jitter: &jitter)
        }
        var assigned: [PublicKey: [Int]] = [:]
        for index in record.devices.indices {
            let registrant = record.devices[index].registrant
            let isResting = if case .resting = record.devices[index].state { true } else { false }
            record.devices[index].noteTime(at: now, isQuerying: isQuerying(registrant))
            guard record.devices[index].state == .ready else { continue }
            // Every known server failed for a round: one that is not known may have the device.
            if isResting, askable(registrant), record.devices[index].wasRefused != true { actions.append(.query(registrant)) }
            if let server = nextServer(
                for: &record.devices[index], directory, assigned: assigned, askable: askable, at: now, jitter: &jitter)
            {
                assigned[server, default: []].append(index)
            }
        }
        for (server, indices) in assigned.sorted(by: { $0.key.uncompressed.lexicographicallyPrecedes($1.key.uncompressed) }) {
            request(&record, indices, by: server, directory, at: now)
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
        if record.isFinished, active.remove(id) != nil {
            record.content = []
            actions.append(.finished(messageID: id))
        }
        guard record != messages[id] else { return }
        messages[id] = record
        changed.insert(id)
    }

    private mutating func report(_ id: [UInt8], _ outcome: DeviceOutcome) {
        if case .notified = outcome.result {
            actions.append(.report(.notified(messageID: id, outcome)))
        } else {
            actions.append(.report(.gaveUp(messageID: id, outcome)))
        }
    }

    private mutating func giveUp(_ id: [UInt8], _ reason: DeviceOutcome.GiveUpReason) {
        guard var record = messages[id], active.contains(id) else { return }
        let before = record
        for index in record.devices.indices where !record.devices[index].isDone {
            record.devices[index].state = .done(.gaveUp(reason))
        }
        for index in record.recipients.indices where record.recipients[index].search != nil {
            record.recipients[index].search = nil
            record.failed.append(.init(registrant: record.recipients[index].registrant, reason: reason))
        }
        store(record, before)
    }
}

/// What one server is asked for, whatever the protocol makes of it.
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

/// What a server says of a device that it was asked for.
enum NotificationVerdict: Hashable, Sendable {
    case notified
    /// It does not take the token, or knows no such device.
    case tokenRefused
    /// It could not do it yet, and goes on by itself.
    case failed
    case otherError
}
