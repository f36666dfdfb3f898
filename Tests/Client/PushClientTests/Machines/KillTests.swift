import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import PushClient

/// The process is killed at each step of a client's day: before its changes are stored, or after that and before its actions are performed.
@Suite struct KillTests {
    @Test(arguments: [false, true], ClientVersion.allCases)
    func everythingContinuesAfterAKillAtAnyStep(_ storesBeforeKill: Bool, version: ClientVersion) throws {
        switch version {
        case .deployed: #expect(try KilledWorld.stepCount(storesBeforeKill) > 25)
        case .v01: #expect(try KilledV01World.stepCount(storesBeforeKill) > 20)
        }
    }

    @Test func recordsAreTheSameAfterTheirEncoding() throws {
        var world = KilledWorld(killAt: 0, storesBeforeKill: true)
        try world.live()
        var profile = DeviceProfile.phone
        profile.blockedChats = ["a", "b"]
        profile.blockedAuthors = [newKey()]
        profile.contacts = [newKey(), newKey()]
        profile.contactsOnly = true
        let server = PushServer(key: world.servers[0], dialect: .published)
        try world.step { machine, _ in machine.register(profile, with: [server]) }
        try expectUnchangedByEncoding(world.bench.stored, count: 4)
    }

    @Test func recordsOfVersion01AreTheSameAfterTheirEncoding() throws {
        var world = try KilledV01World(killAt: 0, storesBeforeKill: true)
        try world.live()
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["a", "b"]
        profile.contacts = [newKey(), newKey()]
        profile.contactsOnly = true
        try world.step { machine, _ in machine.registrations.register(profile, with: [newKey()]) }
        try expectUnchangedByEncoding(world.bench.stored, count: 5)
    }

    private func expectUnchangedByEncoding<Version>(_ stored: [RecordKey: MachineRecord<Version>], count: Int) throws {
        #expect(stored.count >= count)
        for (key, record) in stored {
            let name = MachineRecord<Version>.name(of: key)
            let decoded = try MachineRecord<Version>(name, record.encoded())
            #expect(decoded == record && decoded.key == key && MachineRecord<Version>.isName(name))
        }
    }

    @Test func recordsThatCanNotBeReadAreReported() {
        for bytes in [[], [1], [1, 2, 3], Array("\u{1}{}".utf8), Array("\u{2}{}".utf8)] as [[UInt8]] {
            for name in ["own", "server/x", "registrant/x", "message/x", "what"] {
                #expect(throws: ClientStoreError.self) { try ClientRecord(name, bytes) }
                #expect(throws: ClientStoreError.self) { try V01Record("v0.1/" + name, bytes) }
            }
        }
    }
}

/// A client and its servers. The client's process is killed once.
private protocol KillableWorld {
    associatedtype Version: PushClient.ClientVersion

    init(killAt step: Int, storesBeforeKill: Bool) throws
    var bench: Bench<Version> { get set }
    var stepsLeft: Int { get set }
    var storesBeforeKill: Bool { get }
    /// Lets the servers answer a published message.
    mutating func answer(_ action: MachineAction<Version>) throws
    /// The application's calls. They are repeated after a kill, because the application can't know which of them succeeded.
    mutating func live() throws
}

extension KillableWorld {
    /// The number of steps after which a kill comes too late.
    static func stepCount(_ storesBeforeKill: Bool) throws -> Int {
        var step = 1
        while true {
            var world = try Self(killAt: step, storesBeforeKill: storesBeforeKill)
            try world.live()
            if world.stepsLeft > 0 { return step }
            step += 1
        }
    }

    /// Stores and queues the output, unless this is the step of the kill.
    mutating func step(_ body: (inout PushClientMachine<Version>, Timestamp) throws -> Void) throws {
        try body(&bench.machine, bench.now)
        let output = bench.machine.settle(at: bench.now)
        guard !output.isEmpty else { return }
        stepsLeft -= 1
        guard stepsLeft == 0 else { return bench.take(output) }
        if storesBeforeKill { for (key, record) in output.changes { bench.stored[key] = record } }
        bench.restart(after: .seconds(1))
    }

    /// Lets servers and network answer at once.
    mutating func settle(for duration: Duration) throws {
        let end = bench.now + duration
        while true {
            for action in bench.takeActions() {
                try step { $0.ended(action, isPublished: true, at: $1) }
                try answer(action)
            }
            guard bench.actions.isEmpty else { continue }
            guard let next = bench.machine.nextWakeUp, next <= end else { break }
            bench.now = max(bench.now, next)
            try step { $0.wake(at: $1) }
        }
        bench.now = end
    }
}

private struct KilledWorld: KillableWorld {
    var bench = MachineBench()
    let servers = (0..<2).map { _ in newKey() }
    let friend = Friend()
    var versions: [PublicKey: UInt64] = [:]
    var registered: [PublicKey: PushNotificationRegistration] = [:]
    var notified: Set<[UInt8]> = []
    var stepsLeft: Int
    let storesBeforeKill: Bool

    init(killAt step: Int, storesBeforeKill: Bool) {
        stepsLeft = step
        self.storesBeforeKill = storesBeforeKill
    }

    mutating func answer(_ action: ClientMachine.Action) throws {
        switch action {
        case .register(let server, let sent):
            let registration = try bench.registration(sent.sealed)
            let isNewer = registration.version > versions[server] ?? 0
            if isNewer {
                versions[server] = registration.version
                registered[server] = registration.unregister ? nil : registration
            }
            let response = PushNotificationRegistrationResponse(error: isNewer ? nil : .versionMismatch, requestID: sent.requestID)
            try step { $0.registrationAnswered(by: server, response, at: $1) }
        case .query(let ticket, let registrant, _):
            for server in servers {
                let row: PushNotificationQueryInfo
                if registrant == friend.key {
                    row = friend.row(at: server)
                } else if let registration = registered[server] {
                    row = PushNotificationQueryInfo(
                        accessToken: registration.accessToken, installationID: registration.installationID,
                        publicKey: KeyHash(of: registrant).bytes, allowedKeyList: [], grant: registration.grant,
                        version: registration.version, serverPublicKey: server.compressed)
                } else {
                    continue
                }
                try step { $0.queryAnswered(ticket, by: server, rows: [row], at: $1) }
            }
        case .request(let ticket, let server, let request):
            notified.insert(request.messageID)
            let reports = PushNotificationRequest(request).requests.map {
                PushNotificationReport(error: nil, publicKey: $0.publicKey, installationID: $0.installationID)
            }
            let response = PushNotificationResponse(messageID: request.messageID, reports: reports)
            try step { $0.requestAnswered(ticket, by: server, response, at: $1) }
        case .advertise, .lookUp, .watch, .unwatch, .report: break
        }
    }

    mutating func live() throws {
        let list = servers.map { PushServer(key: $0) }
        var changed = DeviceProfile.phone
        changed.contactsOnly = true
        changed.contacts = [friend.key]
        for profile in [DeviceProfile.phone, changed] {
            for _ in 0..<2 {
                try step { machine, _ in machine.register(profile, with: list) }
                try settle(for: .seconds(120))
            }
            let wanted = bench.machine.own.content?.accessToken
            #expect(
                servers.allSatisfy {
                    registered[$0]?.accessToken == wanted && registered[$0]?.allowFromContactsOnly == profile.contactsOnly
                })
            #expect(bench.machine.isSettled(servers))
        }
        let message = OutgoingNotification(messageID: [1], chatID: "chat", kind: .message, recipients: [.init(friend.key)])
        for _ in 0..<2 {
            try step { $0.notify(message, chat: StatusHashes.chat(message.chatID), author: [1], at: $1) }
            try settle(for: .seconds(120))
        }
        #expect(notified == [[1]] && bench.machine.notifications.messages[[1]]?.outcomes.count == 1)
        for _ in 0..<2 {
            try step { machine, _ in machine.setReceiving(false) }
            try settle(for: .seconds(600))
        }
        #expect(registered.isEmpty && bench.machine.isSettled(servers))
    }
}

/// The servers are nodes that apply the real rules.
private struct KilledV01World: KillableWorld {
    var bench = V01MachineBench()
    let identities = [PrivateKey.generate(), .generate()]
    var nodes: [PublicKey: PlainV01Node] = [:]
    let friend = PrivateKey.generate()
    var stepsLeft: Int
    let storesBeforeKill: Bool

    init(killAt step: Int, storesBeforeKill: Bool) throws {
        stepsLeft = step
        self.storesBeforeKill = storesBeforeKill
        for identity in identities { nodes[identity.publicKey] = PlainV01Node(identity: identity) }
        let account = V01Account(of: identities[0].publicKey, identity: friend)
        _ = try nodes[account.server]?.receive(account.message(account.register(version: 1)))
    }

    var servers: [PublicKey] { identities.map(\.publicKey) }

    /// - Returns: The payload of the answer.
    private mutating func ask(_ server: PublicKey, _ type: V01.MessageType, _ payload: [UInt8], _ key: PrivateKey) throws -> [UInt8]? {
        try nodes[server]?.receive(V01Account.message(type, payload, to: server, signedBy: key))?.payload
    }

    mutating func answer(_ action: V01Machine.Action) throws {
        switch action {
        case .register(let server, let register):
            guard let answer = try ask(server, .register, register.encoded(), bench.identity) else { return }
            let response = try V01.RegistrationResponse(parsing: answer)
            try step { $0.registrationAnswered(by: server, response, at: $1) }
        case .query(let ticket, let registrant, let servers):
            for server in servers {
                let query = V01.Query([V01.KeyHash(of: registrant)]).encoded()
                guard let answer = try ask(server, .query, query, .generate()) else { continue }
                let rows = try V01.QueryResponse(parsing: answer).info
                try step { $0.queryAnswered(ticket, by: server, rows: rows, at: $1) }
            }
        case .request(let ticket, let server, let request):
            let ackKey = try #require(V01.AckKey(randomBytes(32)))
            let encoded = V01.Request(request, ackKey: ackKey).encoded()
            guard let answer = try ask(server, .request, encoded, .generate()) else { return }
            let error = try V01.Acknowledgement(parsing: answer).error
            try step { $0.requestAcknowledged(ticket, by: server, error, at: $1) }
        case .advertise, .lookUp, .watch, .unwatch, .report: break
        }
    }

    func record(at server: PublicKey) -> V01.Preferences? {
        nodes[server]?.records[V01.KeyHash(of: bench.publicKey)]
    }

    mutating func live() throws {
        var changed = V01DeviceProfile.phone
        changed.contactsOnly = true
        changed.contacts = [friend.publicKey]
        for profile in [V01DeviceProfile.phone, changed] {
            for _ in 0..<2 {
                try step { [servers] machine, _ in machine.registrations.register(profile, with: servers) }
                try settle(for: .seconds(300))
            }
            let content = try #require(bench.machine.own.content)
            #expect(servers.allSatisfy { record(at: $0) == content.preferences })
            #expect(servers.allSatisfy { bench.status($0) == .registered(version: content.version) })
        }
        let message = OutgoingNotification(messageID: [1], chatID: "chat", kind: .message, recipients: [.init(friend.publicKey)])
        for _ in 0..<2 {
            try step { $0.notify(message, chat: V01.chatHash(message.chatID), author: [], at: $1) }
            try settle(for: .seconds(120))
        }
        #expect(servers.map { nodes[$0]?.notified.count } == [1, 0])
        #expect(bench.machine.notifications.messages[[1]]?.outcomes.map(\.result) == [.notified(by: servers[0])])
        for _ in 0..<2 {
            try step { machine, _ in machine.setReceiving(false) }
            try settle(for: .seconds(600))
        }
        #expect(servers.allSatisfy { record(at: $0) == nil && bench.status($0) == .unregistered })
    }
}
