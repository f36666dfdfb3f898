import Core
import WakuCrypto

/// The messages that are not finished. Finds those that an event concerns and those whose time has come: with thousands of messages, going through
/// all of them after each event would take longer than the next event.
struct ActiveMessages: Sendable {
    typealias ID = [UInt8]

    private(set) var ids: Set<ID> = []
    private var idsByRegistrant: [PublicKey: Set<ID>] = [:]
    /// When each message goes on by itself.
    private var times = IndexedHeap<ID, Timestamp>()
    /// The messages to go on with now.
    private var due: Set<ID> = []

    var isEmpty: Bool { ids.isEmpty }
    var nextWakeUp: Timestamp? { times.first?.key }
    /// In a fixed order, so that runs with the same seed are the same.
    var sorted: [ID] { Self.sorted(ids) }

    func contains(_ id: ID) -> Bool { ids.contains(id) }

    /// The messages with this recipient.
    func ids(for registrant: PublicKey) -> [ID] { Self.sorted(idsByRegistrant[registrant] ?? []) }

    private static func sorted(_ ids: Set<ID>) -> [ID] {
        ids.count < 2 ? Array(ids) : ids.sorted { $0.lexicographicallyPrecedes($1) }
    }

    // MARK: Changes

    /// Adds a message, or notes its additional recipients.
    mutating func insert(_ record: MessageRecord) {
        ids.insert(record.messageID)
        for registrant in record.registrants { idsByRegistrant[registrant, default: []].insert(record.messageID) }
        noteChange(of: record)
    }

    mutating func remove(_ record: MessageRecord) {
        let id = record.messageID
        ids.remove(id)
        due.remove(id)
        times.remove(id)
        for registrant in record.registrants {
            idsByRegistrant[registrant]?.remove(id)
            if idsByRegistrant[registrant]?.isEmpty == true { idsByRegistrant[registrant] = nil }
        }
    }

    mutating func noteChange(of record: MessageRecord) {
        due.insert(record.messageID)
        schedule(record)
    }

    /// Records that something is known about these registrants that their messages may wait for.
    mutating func noteNews(about registrants: some Sequence<PublicKey>) {
        for registrant in registrants { due.formUnion(idsByRegistrant[registrant] ?? []) }
    }

    /// Records that something changed that concerns all messages.
    mutating func noteNews() { due = ids }

    private mutating func schedule(_ record: MessageRecord) {
        times.remove(record.messageID)
        times.insert(record.messageID, key: record.nextWakeUp)
    }

    // MARK: Time

    /// Takes the messages that may go on now. ``wait(_:)`` is called for each.
    mutating func takeDue(at now: Timestamp) -> [ID] {
        while let next = times.first, next.key <= now {
            times.remove(next.id)
            due.insert(next.id)
        }
        defer { due = [] }
        return Self.sorted(due)
    }

    /// Records that a message can't go on before the next event or its time.
    mutating func wait(_ record: MessageRecord) {
        guard ids.contains(record.messageID) else { return }
        due.remove(record.messageID)
        schedule(record)
    }
}

extension MessageRecord {
    fileprivate var registrants: Set<PublicKey> {
        Set(recipients.map(\.registrant)).union(devices.map(\.registrant))
    }

    /// When the message goes on if nothing else happens before.
    fileprivate var nextWakeUp: Timestamp {
        var next = begun + NotificationMachine.messageLife
        for device in devices {
            switch device.state {
            case .asking(_, let deadline): if let deadline { next = min(next, deadline.time) }
            case .askingAgain(_, let at): next = min(next, at.time)
            case .resting(let until): next = min(next, until.time)
            case .ready, .querying, .done: break
            }
        }
        for recipient in recipients {
            if let until = recipient.search?.restsUntil { next = min(next, until.time) }
            if case .until(let limit)? = recipient.search?.wait { next = min(next, limit.time) }
        }
        return next
    }
}
