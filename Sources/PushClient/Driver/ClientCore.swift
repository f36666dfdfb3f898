import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// The machine, and what its driver shares between tasks.
struct ClientCore: Sendable {
    /// A question on its way, with the key that its answer is for.
    struct Ticket: Sendable {
        enum Kind: Sendable {
            /// The id of its envelope.
            case query(QueryTable.Ticket, messageID: [UInt8])
            case request(NotificationMachine.Ticket)
        }

        let key: PrivateKey
        let topic: TopicTag
        let kind: Kind
    }

    /// Answers to older questions are not read any more.
    static let ticketLimit = 512

    var machine: ClientMachine
    let clock: SteadyClock
    /// Not yet kept and done.
    var outputs: [ClientOutput] = []
    private(set) var tickets: [Ticket] = []
    /// Contact code topics that are listened to.
    private(set) var contactCodes: [TopicTag: PublicKey] = [:]
    var listeners: [Int: AsyncStream<PushClientEvent>.Continuation] = [:]
    /// Rung after each turn: by run(), and by whoever waits for an outcome.
    var bells: [Int: AsyncStream<Void>.Continuation] = [:]
    var nextID = 0
    var isStarted = false
    /// Outputs so far, and how many of them were kept.
    private(set) var outputCount = 0
    var keptCount = 0

    private static let start = ContinuousClock.now
    /// By a clock that is never set.
    private static var uptime: Duration { start.duration(to: .now) }

    init(identity: PrivateKey, records: [ClientRecord], deviceLimit: Int) {
        var kept: Timestamp?
        for case .own(let record) in records { kept = record.time }
        clock = SteadyClock(kept: kept, clock: .now(), uptime: Self.uptime)
        let cryptography = IdentityCryptography(identity: identity)
        let installationID = InstallationID(bytes: cryptography.makeAccessToken().bytes)
        machine = ClientMachine(
            records: records, installationID: installationID, cryptography: cryptography, at: clock.time(at: Self.uptime))
        machine.setDeviceLimit(deviceLimit)
    }

    var now: Timestamp { clock.time(at: Self.uptime) }

    mutating func add(_ output: ClientOutput) {
        guard !output.isEmpty else { return }
        outputs.append(output)
        outputCount += 1
    }

    mutating func add(_ ticket: Ticket) {
        tickets.append(ticket)
        if tickets.count > Self.ticketLimit { tickets.removeFirst() }
    }

    mutating func listen(toContactCodesOf registrants: [PublicKey]) {
        for registrant in registrants { contactCodes[TopicTag(of: StatusTopics.contactCode(registrant))] = registrant }
    }

    mutating func makeID() -> Int {
        defer { nextID += 1 }
        return nextID
    }
}

/// Keys of topics that messages came in on or went out to. Each takes 11 ms to derive, once.
final class TopicKeyCache: Sendable {
    private static let limit = 1000
    private let keys = Mutex<[String: SymmetricKey]>([:])

    func key(of topic: String) -> SymmetricKey {
        if let key = keys.withLock({ $0[topic] }) { return key }
        let key = KeyDerivation.topicKey(topic)
        keys.withLock { keys in
            if keys.count >= Self.limit { keys.removeAll() }
            keys[topic] = key
        }
        return key
    }
}
