import StatusProtocol
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
        case request(Ticket, server: PublicKey, PushNotificationRequest)
        /// Nothing fresh is known of the registrant.
        case query(PublicKey)
        case report(PushClientEvent)
        case finished(messageID: [UInt8])
    }

    private struct Request: Sendable {
        let messageID: [UInt8]
        let server: PublicKey
        /// With the token that each was asked with.
        let devices: [DeviceID: AccessToken]
        let begun: Timestamp
    }

    private struct DeviceID: Hashable {
        let registrant: PublicKey
        let installationID: InstallationID
    }

    /// How many devices of a registrant are notified when the message does not name them.
    var deviceLimit = Self.defaultDeviceLimit {
        didSet { deviceLimit = min(max(deviceLimit, 1), Self.maximumDeviceLimit) }
    }

    private(set) var messages: [[UInt8]: MessageRecord] = [:]
    private var requests: [Ticket: Request] = [:]
    private var nextTicket: Ticket = 1
    private var actions: [Action] = []
    private(set) var changed: Set<[UInt8]> = []
    /// Messages with something left to do.
    private var active: Set<[UInt8]> = []

    init(restoring records: [MessageRecord] = []) {
        for var record in records {
            for index in record.devices.indices {
                switch record.devices[index].state {
                case .asking(let server, _):
                    // Its answer can't be read any more: the same server knows whether it did it, so it is the first to be asked again.
                    record.devices[index].preferred = server.key
                    record.devices[index].state = .ready
                case .querying: record.devices[index].state = .ready
                case .ready, .askingAgain, .resting, .done: break
                }
            }
            messages[record.messageID] = record
            if !record.isFinished { active.insert(record.messageID) }
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
    mutating func notify(_ message: OutgoingNotification, author: [UInt8], own: (PublicKey, InstallationID), at now: Timestamp) {
        forgetOldOutcomes(at: now)
        var record =
            messages[message.messageID]
            ?? MessageRecord(
                messageID: message.messageID, chatHash: StatusHashes.chat(message.chatID), authorHash: author,
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
        _ directory: Directory, askable: (PublicKey) -> Bool, own: (PublicKey, InstallationID), at now: Timestamp, jitter: inout Jitter
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
        _ id: [UInt8], _ directory: Directory, askable: (PublicKey) -> Bool, own: (PublicKey, InstallationID), at now: Timestamp,
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
            noteTime(&record.devices[index], at: now)
            guard record.devices[index].state == .ready else { continue }
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

    private mutating func store(_ record: MessageRecord, _ before: MessageRecord) {
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

    // MARK: Recipients whose devices are not known

    private mutating func search(
        _ record: inout MessageRecord, _ index: Int, _ directory: Directory, askable: (PublicKey) -> Bool,
        own: (PublicKey, InstallationID), at now: Timestamp, jitter: inout Jitter
    ) {
        guard var search = record.recipients[index].search else { return }
        if let until = search.restsUntil {
            guard until.time <= now else { return }
            search = .init(round: search.round)
        }
        let registrant = record.recipients[index].registrant
        let isOwn = registrant == own.0
        let found = directory.activeInstallations(of: registrant, limit: deviceLimit + (isOwn ? 1 : 0), at: now)
            .filter { !(isOwn && $0 == own.1) }.prefix(deviceLimit)
        // A query that was begun may tell of more.
        if !found.isEmpty, !(search.wasQueried && isQuerying(registrant)) {
            record.recipients[index].search = nil
            for id in found where !record.devices.contains(where: { $0.registrant == registrant && $0.installationID == id }) {
                record.devices.append(.init(registrant: registrant, installationID: id))
            }
            return
        }
        if found.isEmpty, !search.wasQueried, askable(registrant) {
            search.wasQueried = true
            actions.append(.query(registrant))
        } else if !isQuerying(registrant) {
            let known = Set(directory.rows(of: registrant).map(\.installationID))
            if !known.isEmpty, known.allSatisfy({ directory.isForOthers($0, of: registrant, at: now) }) {
                record.recipients[index].search = nil
                for id in known.sorted(by: { $0.bytes.lexicographicallyPrecedes($1.bytes) }) {
                    record.devices.append(.init(registrant: registrant, installationID: id, state: .done(.notAllowed)))
                }
                return
            }
            if search.round >= Self.roundLimit {
                record.recipients[index].search = nil
                record.failed.append(.init(registrant: registrant, reason: .noDevice))
                return
            }
            let pause = RetryDelay.after(failures: search.round, base: Self.pauseBase, jitter: jitter.next())
            search = .init(round: search.round + 1, wasQueried: false, restsUntil: StoredTime(now + pause))
        }
        record.recipients[index].search = search
    }

    /// Set by whoever owns the machine: registrants that a query is on its way about.
    var queried: Set<PublicKey> = []

    /// Whether every device of the registrant that a message waits for is known: its query need not go on.
    ///
    /// - Parameters:
    ///   - registrant: The query's.
    ///   - directory: With what servers answered.
    ///   - begun: When the query was: what was known before does not count.
    func knowsAll(of registrant: PublicKey, _ directory: Directory, since begun: Timestamp) -> Bool {
        for id in active {
            guard let record = messages[id] else { continue }
            if record.recipients.contains(where: { $0.registrant == registrant && $0.search != nil }) { return false }
            for device in record.devices where device.registrant == registrant && device.state == .querying {
                let isKnown = directory.rows(of: registrant).contains { row in
                    row.installationID == device.installationID && row.learnedAt >= begun
                }
                if !isKnown { return false }
            }
        }
        return true
    }

    private func isQuerying(_ registrant: PublicKey) -> Bool { queried.contains(registrant) }

    // MARK: Devices

    private func noteTime(_ device: inout MessageRecord.Device, at now: Timestamp) {
        switch device.state {
        case .asking(let server, let deadline?) where deadline.time <= now:
            device.tried.append(server.key)
            device.state = .ready
        case .askingAgain(let server, let at) where at.time <= now:
            device.preferred = server.key
            device.state = .ready
        case .resting(let until) where until.time <= now:
            device.state = .ready
        case .querying where !isQuerying(device.registrant):
            device.state = .ready
        case .ready, .querying, .asking, .askingAgain, .resting, .done: break
        }
    }

    /// The server to ask, or nil after the device's state was changed to what it waits for.
    private mutating func nextServer(
        for device: inout MessageRecord.Device, _ directory: Directory, assigned: [PublicKey: [Int]], askable: (PublicKey) -> Bool,
        at now: Timestamp, jitter: inout Jitter
    ) -> PublicKey? {
        let rows = directory.usableRows(of: device.installationID, of: device.registrant, at: now)
        if device.mustQuery {
            device.mustQuery = false
            if !device.wasQueried, askable(device.registrant) {
                device.wasQueried = true
                device.state = .querying
                actions.append(.query(device.registrant))
                return nil
            }
        }
        let candidates = rows.filter { !device.tried.contains($0.server) }
        if let preferred = device.preferred {
            device.preferred = nil
            if candidates.contains(where: { $0.server == preferred }) { return preferred }
        }
        // The fewest requests: a server that is asked anyway comes first. Then the one whose token was learned last.
        let best = candidates.max { left, right in
            let (leftCount, rightCount) = (assigned[left.server]?.count ?? 0, assigned[right.server]?.count ?? 0)
            if leftCount != rightCount { return leftCount < rightCount }
            if left.learnedAt != right.learnedAt { return left.learnedAt < right.learnedAt }
            return left.server.uncompressed.lexicographicallyPrecedes(right.server.uncompressed)
        }?.server
        if let best { return best }
        if !device.wasQueried, device.tried.isEmpty || rows.isEmpty, askable(device.registrant) {
            device.wasQueried = true
            device.state = .querying
            actions.append(.query(device.registrant))
            return nil
        }
        if directory.isForOthers(device.installationID, of: device.registrant, at: now), device.tried.isEmpty {
            device.state = .done(.notAllowed)
            return nil
        }
        Self.endRound(of: &device, at: now, jitter: jitter.next())
        return nil
    }

    private static func endRound(of device: inout MessageRecord.Device, at now: Timestamp, jitter: Double) {
        guard device.round < Self.roundLimit else {
            device.state = .done(.gaveUp(.noServer))
            return
        }
        let pause = RetryDelay.after(failures: device.round, base: Self.pauseBase, jitter: jitter)
        device.round += 1
        device.tried = []
        device.askedAgain = []
        device.wasQueried = false
        device.state = .resting(until: StoredTime(now + pause))
    }

    private mutating func request(
        _ record: inout MessageRecord, _ indices: [Int], by server: PublicKey, _ directory: Directory, at now: Timestamp
    ) {
        var tokens: [DeviceID: AccessToken] = [:]
        var entries: [PushNotification] = []
        for index in indices {
            let device = record.devices[index]
            let rows = directory.usableRows(of: device.installationID, of: device.registrant, at: now)
            guard let token = rows.first(where: { $0.server == server })?.accessToken else { continue }
            tokens[DeviceID(registrant: device.registrant, installationID: device.installationID)] = token
            entries.append(
                PushNotification(
                    accessToken: token, chatID: record.chatHash, publicKey: KeyHash(of: device.registrant).bytes,
                    installationID: device.installationID, message: record.content, kind: NotificationKind(rawValue: record.kind),
                    author: record.authorHash))
            record.devices[index].state = .asking(StoredServer(server), deadline: nil)
        }
        let ticket = nextTicket
        nextTicket += 1
        requests[ticket] = Request(messageID: record.messageID, server: server, devices: tokens, begun: now)
        actions.append(.request(ticket, server: server, PushNotificationRequest(requests: entries, messageID: record.messageID)))
    }

    // MARK: What came of requests

    mutating func published(_ ticket: Ticket, at now: Timestamp) {
        changeDevices(of: ticket) { device, server in
            guard device.state == .asking(server, deadline: nil) else { return }
            device.state = .asking(server, deadline: StoredTime(now + Self.answerDeadline))
        }
    }

    /// It says nothing of the server: the round is over, and begins again after its pause.
    mutating func notPublished(_ ticket: Ticket, at now: Timestamp, jitter: inout Jitter) {
        var jitters: [Double] = []
        for _ in 0..<(requests[ticket]?.devices.count ?? 0) { jitters.append(jitter.next()) }
        changeDevices(of: ticket) { device, server in
            guard device.state == .asking(server, deadline: nil) else { return }
            Self.endRound(of: &device, at: now, jitter: jitters.popLast() ?? 0)
        }
    }

    /// What the server signed. Entries of others' devices, or of devices that it was not asked for, are not believed.
    ///
    /// - Returns: The devices whose tokens it does not take, with those tokens.
    mutating func answered(
        _ ticket: Ticket, by server: PublicKey, _ response: PushNotificationResponse, at now: Timestamp
    ) -> [(registrant: PublicKey, installationID: InstallationID, server: PublicKey, token: AccessToken)] {
        guard let request = requests[ticket], request.server == server, request.messageID == response.messageID else { return [] }
        let reports = response.reports
        var refused: [(registrant: PublicKey, installationID: InstallationID, server: PublicKey, token: AccessToken)] = []
        changeDevices(of: ticket) { device, server in
            guard !device.isDone || device.state == .done(.gaveUp(.noServer)) || device.state == .done(.gaveUp(.expired)) else { return }
            let hash = KeyHash(of: device.registrant).bytes
            guard let report = reports.first(where: { $0.publicKey == hash && $0.installationID == device.installationID }) else { return }
            guard let error = report.error else {
                // Also when another server is being asked meanwhile.
                device.state = .done(.notified(by: server))
                return
            }
            guard case .asking(server, _) = device.state else { return }
            switch error {
            case .wrongToken, .notRegistered:
                let id = DeviceID(registrant: device.registrant, installationID: device.installationID)
                if let token = request.devices[id] { refused.append((device.registrant, device.installationID, server.key, token)) }
                // With a token from a query the same server may take it; other servers' tokens are probably as old.
                if device.wasQueried { device.tried.append(server.key) } else { device.mustQuery = true }
                device.state = .ready
            case .internalError where !device.askedAgain.contains(server.key):
                device.askedAgain.append(server.key)
                device.state = .askingAgain(server, at: StoredTime(now + Self.askAgainDelay))
            case .internalError, .unknown:
                device.tried.append(server.key)
                device.state = .ready
            }
        }
        return refused
    }

    private mutating func changeDevices(of ticket: Ticket, _ change: (inout MessageRecord.Device, StoredServer) -> Void) {
        guard let request = requests[ticket], var record = messages[request.messageID] else { return }
        let before = record
        let server = StoredServer(request.server)
        for index in record.devices.indices {
            let id = DeviceID(registrant: record.devices[index].registrant, installationID: record.devices[index].installationID)
            if request.devices[id] != nil { change(&record.devices[index], server) }
        }
        if record != before { store(record, before) }
    }
}
