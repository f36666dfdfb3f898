import Core
import StatusProtocol
import TestSupport
import WakuCrypto

@testable import PushClient

/// Three servers and fifty clients in virtual time, with all kinds of failures, determined by a seed.
///
/// For half an hour messages are lost, delayed, duplicated and reordered, servers stop and restart, relays disconnect and reconnect, clients are
/// killed, and clocks step. Then the network recovers, but dishonest servers stay dishonest. From then on every client that can be registered must
/// be, and each message must notify its device.
struct ClientSimulation {
    static let clientCount = 50
    static let faultyPhase = Duration.seconds(1800)
    static let healing = Duration.seconds(3 * 3600)
    private static let lateness = Duration.seconds(3)

    /// Creating keys costs more than the rest, so all schedules share them. They are the same in each process, so that a seed gives the same run
    /// everywhere.
    private static func key(_ name: String) -> PublicKey {
        (try? PrivateKey(bytes: SHA256.hash(Array(name.utf8))))?.publicKey ?? newKey()
    }

    private static let serverKeys = (0..<3).map { key("server \($0)") }
    private static let clientKeys = (0..<clientCount).map { key("client \($0)") }
    private static let clientHashes = clientKeys.map(KeyHash.init)
    private static let clientNumbers = Dictionary(uniqueKeysWithValues: zip(clientKeys, 0...))
    private static let serverNumbers = Dictionary(uniqueKeysWithValues: zip(serverKeys, 0...))
    private static let numbersByHash = Dictionary(uniqueKeysWithValues: zip(clientHashes.map(\.bytes), 0...))
    private static let installations = (0..<clientCount).map { InstallationID("device-\($0)") }

    /// Counts of outcomes.
    struct Figures {
        var registered = 0
        var mustArrive = 0
        var notified = 0

        static func += (sum: inout Figures, other: Figures) {
            sum.registered += other.registered
            sum.mustArrive += other.mustArrive
            sum.notified += other.notified
        }
    }

    private enum Event {
        case wake(client: Int, life: Int)
        case atServer(Int, ClientMachine.Action, client: Int, life: Int)
        case registrationAnswer(client: Int, server: Int, PushNotificationRegistrationResponse)
        case queryAnswer(client: Int, life: Int, ticket: UInt64, server: Int, [PushNotificationQueryInfo])
        case requestAnswer(client: Int, life: Int, ticket: UInt64, server: Int, PushNotificationResponse)
        case advertisement(from: Int, to: Int, [PushNotificationQueryInfo], sentAt: Duration)
        case register(client: Int)
        case unregister(client: Int)
        case kill(client: Int)
        case relay(client: Int, isUp: Bool)
        case server(Int, isUp: Bool)
        case message(from: Int, to: Int)
        case heal
    }

    private final class Client {
        var machine: ClientMachine
        var clock: SteadyClock
        /// The error of the machine's clock.
        var clockError = Duration.zero
        var kept: [RecordKey: ClientRecord] = [:]
        var life = 0
        var isRelayUp = true
        var isRegistered = false
        var wantsServers: [Int] = []
        var profile: DeviceProfile
        var publicationCount = 0
        var scheduledWake: Duration?
        /// The time until which this registration must not be repeated.
        var rests: [[UInt8]: Duration] = [:]
        var lastSent: [Int: [UInt8]] = [:]
        var lastPause: [Int: (tries: Int, pause: Duration)] = [:]

        init(machine: ClientMachine, clock: SteadyClock, profile: DeviceProfile) {
            self.machine = machine
            self.clock = clock
            self.profile = profile
        }
    }

    private struct SentMessage {
        let id: [UInt8]
        let to: Int
        let mustArrive: Bool
        /// An answer was lost or late, or the sender was killed: another server may have been asked as well.
        var mayBeDoubled = false
    }

    private var random: SplitMix64
    private let sealed = SealedRegistrations()
    private var servers: [SimulatedServer]
    private var clients: [Client] = []
    private var queue = EventQueue<Duration, Event>()
    private var now = Duration.zero
    private var isHealed = false
    private var messages: [[UInt8]: (from: Int, sent: SentMessage)] = [:]
    private var latest: [Int: (rows: [PushNotificationQueryInfo], sentAt: Duration)] = [:]
    /// The keys allowed to know a token; nil for everyone.
    private var rights: [AccessToken: Set<PublicKey>?] = [:]
    private(set) var findings: [String] = []
    private(set) var eventCount = 0
    private(set) var figures = Figures()

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        servers = Self.serverKeys.indices.map { SimulatedServer(key: Self.serverKeys[$0], other: Self.serverKeys[($0 + 1) % 3]) }
    }

    // MARK: Running

    /// - Returns: The violations; empty if there are none.
    mutating func run() -> [String] {
        // One server is honest and available; the others may be faulty.
        for index in 1..<3 where chance(50) {
            servers[index].character =
                SimulatedServer.Character.allCases[Int.random(in: 0..<SimulatedServer.Character.allCases.count, using: &random)]
        }
        for number in 0..<Self.clientCount { addClient(number) }
        plan()
        // The last messages are ten minutes old by then. Advertising never ends.
        let end = Self.faultyPhase + Self.healing + .seconds(900)
        while let (time, event) = queue.pop(), time < end, findings.isEmpty {
            now = time
            eventCount += 1
            if eventCount > 100_000 {
                findings.append("events do not end")
                break
            }
            handle(event)
        }
        if findings.isEmpty { check() }
        return findings
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func moment(_ range: Range<Int>) -> Duration {
        .milliseconds(Int.random(in: range.lowerBound * 1000..<range.upperBound * 1000, using: &random))
    }

    private func wall(_ client: Client) -> Timestamp { MachineBench.start + now + client.clockError }

    private mutating func addClient(_ number: Int) {
        let cryptography = ValueCryptography(publicKey: Self.clientKeys[number], sealed: sealed)
        let clock = SteadyClock(kept: nil, lead: .zero, clock: MachineBench.start, uptime: .zero)
        let machine = ClientMachine(
            installationID: Self.installations[number], cryptography: cryptography, jitter: Jitter(seed: random.next()),
            at: clock.time(at: .zero))
        var profile = DeviceProfile(platform: .firebase, deviceToken: DeviceToken("token"))
        profile.contactsOnly = chance(20)
        profile.contacts = Set((0..<4).map { _ in Self.clientKeys[Int.random(in: 0..<Self.clientCount, using: &random)] })
        clients.append(Client(machine: machine, clock: clock, profile: profile))
        clients[number].wantsServers = [0, 1, 2].shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random)).sorted()
        turn(number) { $0.start(at: $1) }
    }

    private mutating func plan() {
        for client in 0..<Self.clientCount {
            queue.add(.register(client: client), at: moment(0..<120))
            if chance(30) { queue.add(.register(client: client), at: moment(120..<1500)) }
            if chance(10) { queue.add(.unregister(client: client), at: moment(120..<1500)) }
            if chance(30) { queue.add(.kill(client: client), at: moment(1..<1500)) }
            if chance(30) {
                let start = moment(0..<1200)
                queue.add(.relay(client: client, isUp: false), at: start)
                queue.add(.relay(client: client, isUp: true), at: start + moment(1..<500))
            }
        }
        for server in 0..<3 where chance(60) {
            let start = moment(0..<1200)
            queue.add(.server(server, isUp: false), at: start)
            if server == 0 || chance(70) { queue.add(.server(server, isUp: true), at: start + moment(1..<590)) }
        }
        for _ in 0..<20 { planMessage(moment(100..<1700)) }
        queue.add(.heal, at: Self.faultyPhase)
        for _ in 0..<20 { planMessage(Self.faultyPhase + Self.healing + moment(0..<60)) }
    }

    private mutating func planMessage(_ time: Duration) {
        let sender = Int.random(in: 0..<Self.clientCount, using: &random)
        queue.add(.message(from: sender, to: (sender + Int.random(in: 1..<Self.clientCount, using: &random)) % Self.clientCount), at: time)
    }

    private mutating func handle(_ event: Event) {
        switch event {
        case .wake(let client, let life):
            guard clients[client].life == life, clients[client].scheduledWake == now else { return }
            clients[client].scheduledWake = nil
            turn(client) { $0.wake(at: $1) }
            if let next = clients[client].machine.nextWakeUp, next <= clients[client].clock.time(at: now) {
                findings.append("client \(client) asks to be woken again at once")
            }
        case .atServer(let server, let action, let client, let life): arrive(at: server, action, from: client, life)
        case .registrationAnswer(let client, let server, let response):
            turn(client) { $0.registrationAnswered(by: Self.serverKeys[server], response, at: $1) }
        case .queryAnswer(let client, let life, let ticket, let server, let rows):
            guard clients[client].life == life else { return }
            turn(client) { $0.queryAnswered(ticket, by: Self.serverKeys[server], rows: rows, at: $1) }
        case .requestAnswer(let client, let life, let ticket, let server, let response):
            guard clients[client].life == life else { return }
            turn(client) { $0.requestAnswered(ticket, by: Self.serverKeys[server], response, at: $1) }
        case .advertisement(let owner, let client, let rows, let sentAt):
            let age = now - sentAt + clients[client].clockError
            turn(client) {
                $0.advertised(by: Self.clientKeys[owner], from: Self.installations[owner], rows: rows, age: age, at: $1)
            }
        case .register(let client): register(client)
        case .unregister(let client):
            clients[client].isRegistered = false
            turn(client) { machine, _ in machine.setReceiving(false) }
        case .kill(let client): restart(client)
        case .relay(let client, let isUp): clients[client].isRelayUp = isUp || isHealed
        case .server(let server, let isUp): servers[server].isUp = isUp || (isHealed && server == 0)
        case .message(let sender, let recipient): notify(from: sender, to: recipient)
        case .heal:
            isHealed = true
            for client in clients.indices { clients[client].isRelayUp = true }
            servers[0].isUp = true
        }
    }

    // MARK: Clients

    private mutating func turn(_ client: Int, _ event: (inout ClientMachine, Timestamp) -> Void) {
        let time = clients[client].clock.time(at: now)
        event(&clients[client].machine, time)
        let output = clients[client].machine.settle(at: time)
        checkProgress(client, at: time)
        take(output, from: client)
    }

    /// An event is to concern every message that can go on after it.
    private mutating func checkProgress(_ client: Int, at time: Timestamp) {
        guard clients[client].machine.notifications.isActive else { return }
        var machine = clients[client].machine
        machine.notifications.active.noteNews()
        if !machine.settle(at: time).isEmpty { findings.append("client \(client) has a message that could go on") }
    }

    /// Acts as a driver: stores the changes, then performs the actions. A kill here happens after both, after the first, or before both.
    private mutating func take(_ output: ClientMachine.Output, from client: Int) {
        for (key, record) in output.changes { clients[client].kept[key] = record }
        for action in output.actions { act(action, client) }
        schedule(client)
    }

    private mutating func schedule(_ client: Int) {
        guard let next = clients[client].machine.nextWakeUp else { return }
        let time = max(now, now + next.since(clients[client].clock.time(at: now)))
        guard clients[client].scheduledWake.map({ time < $0 }) ?? true else { return }
        clients[client].scheduledWake = time
        queue.add(.wake(client: client, life: clients[client].life), at: time)
    }

    private mutating func restart(_ client: Int) {
        if chance(30) { clients[client].clockError += .seconds(Int.random(in: -40_000...40_000, using: &random)) }
        for id in messages.keys where messages[id]?.from == client { messages[id]?.sent.mayBeDoubled = true }
        clients[client].life += 1
        clients[client].scheduledWake = nil
        clients[client].rests = [:]
        let records = Array(clients[client].kept.values)
        let kept = RecordsByKind(records)
        clients[client].clock = SteadyClock(
            kept: kept.time, lead: kept.own?.steadyLead ?? .zero, clock: wall(clients[client]), uptime: now)
        let time = clients[client].clock.time(at: now)
        clients[client].machine = ClientMachine(
            records: records, installationID: Self.installations[client],
            cryptography: ValueCryptography(publicKey: Self.clientKeys[client], sealed: sealed), jitter: Jitter(seed: random.next()),
            at: time)
        clients[client].machine.follow(clients[client].clock)
        turn(client) { $0.start(at: $1) }
    }

    private mutating func register(_ client: Int) {
        if clients[client].isRegistered {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: clients[client].profile.contactsOnly.toggle()
            case 1:
                let first = clients[client].profile.contacts.min { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
                if let first { clients[client].profile.contacts.remove(first) }
            case 2: clients[client].profile.mutedChats.insert("chat-\(now)")
            default: break
            }
        }
        clients[client].isRegistered = true
        let profile = clients[client].profile
        let list = clients[client].wantsServers.map { PushServer(key: Self.serverKeys[$0]) }
        // A kill between storing and acting must lose nothing.
        let isKilled = !isHealed && chance(5)
        clients[client].machine.register(profile, with: list)
        let output = clients[client].machine.settle(at: clients[client].clock.time(at: now))
        noteRights(client)
        guard isKilled else { return take(output, from: client) }
        for (key, record) in output.changes { clients[client].kept[key] = record }
        restart(client)
    }

    private mutating func noteRights(_ client: Int) {
        guard let token = clients[client].machine.own.content?.accessToken else { return }
        let profile = clients[client].profile
        if !profile.contactsOnly {
            rights[token] = .some(nil)
        } else if case .some(.none) = rights[token] {
            findings.append("client \(client) keeps a token that everyone knew")
        } else {
            let before = (rights[token] ?? nil) ?? []
            if !before.isSubset(of: profile.contacts) { findings.append("client \(client) keeps a token that a removed contact knows") }
            rights[token] = profile.contacts
        }
    }

    private mutating func notify(from sender: Int, to recipient: Int) {
        let id = (0..<8).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        turn(sender) { machine, _ in machine.watch(Self.clientKeys[recipient]) }
        let machine = clients[sender].machine
        let askable = machine.directory.servers(of: Self.clientKeys[recipient]).union(machine.own.servers.map(\.key))
        let device = RegistrationKey(keyHash: Self.clientHashes[recipient], installationID: Self.installations[recipient])
        let profile = clients[recipient].profile
        let isAllowed = !profile.contactsOnly || profile.contacts.contains(Self.clientKeys[sender])
        let couldAnyServer = askable.contains { key in
            guard let number = Self.serverNumbers[key], let stored = servers[number].stored[device] else { return false }
            return servers[number].isUp && servers[number].character == .honest
                && stored.registration.accessToken == clients[recipient].machine.own.content?.accessToken
        }
        let mustArrive = isHealed && isAllowed && clients[recipient].isRegistered && couldAnyServer
        messages[id] = (sender, SentMessage(id: id, to: recipient, mustArrive: mustArrive))
        let message = OutgoingNotification(
            messageID: id, chatID: "chat", kind: .message, recipients: [.init(Self.clientKeys[recipient])])
        turn(sender) { $0.notify(message, chat: StatusHashes.chat(message.chatID), author: [1], at: $1) }
    }

    // MARK: The network

    private mutating func act(_ action: ClientMachine.Action, _ client: Int) {
        switch action {
        case .register(let server, let registration):
            let requestID = registration.requestID
            if let until = clients[client].rests[requestID], now + .milliseconds(1) < until {
                findings.append("client \(client) pauses for less time than it reported")
            }
            let isPublished = publish(client)
            if let number = Self.serverNumbers[server] {
                clients[client].lastSent[number] = requestID
                if isPublished { send(action, to: number, from: client) }
            }
            turn(client) { $0.registrationPublished(requestID, to: server, isPublished: isPublished, at: $1) }
        case .query(let ticket, _, let dialects):
            let isPublished = publish(client)
            for _ in dialects where isPublished {
                for number in servers.indices { send(action, to: number, from: client) }
            }
            turn(client) { $0.queryPublished(ticket, isPublished: isPublished, at: $1) }
        case .request(let ticket, let server, let request):
            checkTokens(PushNotificationRequest(request), to: server, from: client)
            let isPublished = publish(client)
            if isPublished, let number = Self.serverNumbers[server] { send(action, to: number, from: client) }
            turn(client) { $0.requestPublished(ticket, isPublished: isPublished, at: $1) }
        case .advertise(let advertisement):
            let rows = advertisement.pushNotificationInfo
            for row in rows where !row.accessToken.isEmpty {
                if case .some(.some) = rights[row.accessToken] {
                    findings.append("client \(client) advertises a token that is not for everyone")
                }
            }
            let isPublished = publish(client)
            if isPublished { advertise(rows, from: client) }
            turn(client) { $0.advertisementPublished(rowCount: rows.count, isPublished: isPublished, at: $1) }
        case .lookUp(let registrants):
            for registrant in registrants {
                guard let owner = Self.clientNumbers[registrant], let stored = latest[owner] else { continue }
                queue.add(.advertisement(from: owner, to: client, stored.rows, sentAt: stored.sentAt), at: now)
            }
            turn(client) { machine, _ in machine.lookUpEnded(registrants, .found) }
        case .report(let event): note(event, client)
        case .watch, .unwatch: break
        }
    }

    private mutating func publish(_ client: Int) -> Bool {
        clients[client].publicationCount += 1
        if clients[client].publicationCount > 2000 { findings.append("client \(client) does not stop publishing") }
        return clients[client].isRelayUp
    }

    /// The arrival times of a message: one or two, or none when it is lost.
    private mutating func arrivals() -> [Duration] {
        guard !isHealed else { return [now + .milliseconds(Int.random(in: 20..<800, using: &random))] }
        guard !chance(15) else { return [] }
        return (0..<(chance(10) ? 2 : 1)).map { _ in
            let delay = chance(10) ? Int.random(in: 2000..<30_000, using: &random) : Int.random(in: 20..<1200, using: &random)
            return now + .milliseconds(delay)
        }
    }

    private mutating func send(_ action: ClientMachine.Action, to server: Int, from client: Int) {
        let times = arrivals()
        if case .request(_, _, let request) = action, times.first.map({ $0 - now > .milliseconds(1200) }) ?? true {
            messages[request.messageID]?.sent.mayBeDoubled = true
        }
        for time in times { queue.add(.atServer(server, action, client: client, life: clients[client].life), at: time) }
    }

    private mutating func advertise(_ rows: [PushNotificationQueryInfo], from owner: Int) {
        latest[owner] = (rows, now)
        for client in clients.indices where clients[client].machine.directory.registrants[Self.clientKeys[owner]]?.isWatched == true {
            for time in arrivals() { queue.add(.advertisement(from: owner, to: client, rows, sentAt: now), at: time) }
        }
    }

    private mutating func arrive(at server: Int, _ action: ClientMachine.Action, from client: Int, _ life: Int) {
        guard servers[server].isUp else { return }
        switch action {
        case .register(_, let sent):
            guard let (owner, registration) = sealed.open(sent.sealed) else { return }
            let response = servers[server].register(owner, Self.clientHashes[client], registration, requestID: sent.requestID)
            for time in arrivals() { queue.add(.registrationAnswer(client: client, server: server, response), at: time) }
        case .query(let ticket, let registrant, _):
            guard let owner = Self.clientNumbers[registrant],
                let rows = servers[server].rows(of: Self.clientHashes[owner], installations: [Self.installations[owner]])
            else { return }
            for time in arrivals() {
                queue.add(.queryAnswer(client: client, life: life, ticket: ticket, server: server, rows), at: time)
            }
        case .request(let ticket, _, let request):
            let reports = servers[server].report(PushNotificationRequest(request))
            let response = PushNotificationResponse(messageID: request.messageID, reports: reports)
            let times = arrivals()
            if times.min().map({ $0 - now > Self.lateness - .milliseconds(1200) }) ?? true {
                messages[request.messageID]?.sent.mayBeDoubled = true
            }
            for time in times {
                queue.add(.requestAnswer(client: client, life: life, ticket: ticket, server: server, response), at: time)
            }
        case .advertise, .watch, .unwatch, .lookUp, .report: break
        }
    }

    // MARK: Invariants

    private mutating func note(_ event: PushClientEvent, _ client: Int) {
        switch event {
        case .willRetry(let server, let tries, let pause):
            guard let number = Self.serverNumbers[server] else { return }
            if let last = clients[client].lastPause[number], tries == last.tries + 1, tries < RegistrationTiming.tryLimit,
                pause <= last.pause
            {
                findings.append("client \(client) pauses for less time than before")
            }
            clients[client].lastPause[number] = (tries, pause)
            if let requestID = clients[client].lastSent[number] { clients[client].rests[requestID] = now + pause }
        case .notified(let id, let outcome):
            guard case .notified(let key) = outcome.result, let server = Self.serverNumbers[key],
                let number = Self.clientNumbers[outcome.registrant]
            else { return }
            let device = RegistrationKey(keyHash: Self.clientHashes[number], installationID: Self.installations[number])
            if servers[server].notified[device]?.contains(id) != true { findings.append("client \(client) reports a false success") }
        default: break
        }
    }

    private mutating func checkTokens(_ request: PushNotificationRequest, to server: PublicKey, from client: Int) {
        for entry in request.requests {
            guard let owner = Self.numbersByHash[entry.publicKey], let number = Self.serverNumbers[server] else {
                findings.append("client \(client) sends a request for no device")
                continue
            }
            if servers[number].tokensShown[Self.clientKeys[owner]]?.contains(entry.accessToken) != true {
                findings.append("client \(client) shows server \(number) a token that its owner did not give it")
            }
            if case .some(.some(let allowed)) = rights[entry.accessToken], !allowed.contains(Self.clientKeys[client]) {
                findings.append("client \(client) has a token that is not for it")
            }
        }
    }

    private mutating func check() {
        for number in clients.indices { checkRegistrations(number) }
        for (id, (sender, sent)) in messages {
            let device = RegistrationKey(keyHash: Self.clientHashes[sent.to], installationID: Self.installations[sent.to])
            let count = servers.count { $0.notified[device]?.contains(id) == true }
            if sent.mustArrive {
                figures.mustArrive += 1
                if count == 0 { findings.append("message \(hexString(id)) from \(sender) did not notify \(sent.to)") }
            }
            if count > 0 { figures.notified += 1 }
            if count > 1, !sent.mayBeDoubled { findings.append("message \(hexString(id)) notified \(sent.to) by \(count) servers") }
            if clients[sender].machine.notifications.messages[id]?.isFinished == false {
                findings.append("message \(hexString(id)) never ended")
            }
        }
    }

    private mutating func checkRegistrations(_ number: Int) {
        let client = clients[number]
        let device = RegistrationKey(keyHash: Self.clientHashes[number], installationID: Self.installations[number])
        for server in servers.indices
        where servers[server].isUp && [.honest, .wrongTokens, .otherDevices].contains(servers[server].character) {
            let stored = servers[server].stored[device]?.registration
            let isWanted = client.isRegistered && client.wantsServers.contains(server)
            if isWanted {
                figures.registered += 1
                if stored?.accessToken != client.machine.own.content?.accessToken
                    || stored?.mutedChatList.count != client.profile.mutedChats.count
                {
                    findings.append("client \(number) is not registered with server \(server) as it wants")
                }
                if client.machine.registrations.servers[Self.serverKeys[server]]?.phase != .idle {
                    findings.append("client \(number) does not know that server \(server) has it")
                }
            } else if stored != nil {
                findings.append("client \(number) is still registered with server \(server)")
            }
        }
    }
}
