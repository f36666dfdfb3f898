import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushClient

/// The process is killed at each step of a version 0.1 client's day: before its changes are stored, or after that and before its actions are
/// performed. The servers are nodes that apply the real rules.
@Suite("Version 0.1, client: killed") struct V01KillTests {
    private struct World {
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

        /// Stores and queues the output, unless this is the step of the kill.
        mutating func step(_ body: (inout V01Machine, Timestamp) -> V01Machine.Output) throws {
            let output = body(&bench.machine, bench.now)
            guard !output.isEmpty else { return }
            stepsLeft -= 1
            guard stepsLeft == 0 else { return bench.take(output) }
            if storesBeforeKill { for (key, record) in output.changes { bench.stored[key] = record } }
            bench.restart(after: .seconds(1))
        }

        mutating func settle(for duration: Duration) throws {
            let end = bench.now + duration
            while true {
                for action in bench.takeActions() { try handle(action) }
                guard bench.actions.isEmpty else { continue }
                guard let next = bench.machine.nextWakeUp, next <= end else { break }
                bench.now = max(bench.now, next)
                try step { $0.wake(at: $1) }
            }
            bench.now = end
        }

        /// - Returns: The payload of the answer.
        private mutating func ask(_ server: PublicKey, _ type: V01.MessageType, _ payload: [UInt8], _ key: PrivateKey) throws -> [UInt8]? {
            try nodes[server]?.receive(V01Account.message(type, payload, to: server, signedBy: key))?.payload
        }

        private mutating func handle(_ action: V01Machine.Action) throws {
            switch action {
            case .register(let server, let register):
                try step { $0.registrationPublished(register.requestID, to: server, isPublished: true, at: $1) }
                guard let answer = try ask(server, .register, register.encoded(), bench.identity) else { return }
                let response = try V01.RegistrationResponse(parsing: answer)
                try step { $0.registrationAnswered(by: server, response, at: $1) }
            case .query(let ticket, let registrant, let servers):
                try step { $0.queryPublished(ticket, isPublished: true, at: $1) }
                for server in servers {
                    let query = V01.Query([V01.KeyHash(of: registrant)]).encoded()
                    guard let answer = try ask(server, .query, query, .generate()) else { continue }
                    let rows = try V01.QueryResponse(parsing: answer).info
                    try step { $0.queryAnswered(ticket, by: server, rows: rows, at: $1) }
                }
            case .request(let ticket, let server, let request):
                try step { $0.requestPublished(ticket, isPublished: true, at: $1) }
                let ackKey = try #require(V01.AckKey(randomBytes(32)))
                let encoded = V01.Request(request, ackKey: ackKey).encoded()
                guard let answer = try ask(server, .request, encoded, .generate()) else { return }
                let error = try V01.Acknowledgement(parsing: answer).error
                try step { $0.requestAcknowledged(ticket, by: server, error, at: $1) }
            case .advertise(let advertisement):
                try step { $0.advertisementPublished(rowCount: advertisement.info.count, isPublished: true, at: $1) }
            case .lookUp(let registrants): try step { $0.lookUpEnded(registrants, .found, at: $1) }
            case .watch, .unwatch, .report: break
            }
        }

        func record(at server: PublicKey) -> V01.Preferences? {
            nodes[server]?.records[V01.KeyHash(of: bench.identity.publicKey)]
        }

        /// The application's calls. They are repeated after a kill, because the application can't know which of them succeeded.
        mutating func live() throws {
            var changed = V01DeviceProfile.phone
            changed.contactsOnly = true
            changed.contacts = [friend.publicKey]
            for profile in [V01DeviceProfile.phone, changed] {
                for _ in 0..<2 {
                    try step { [servers] in $0.register(profile, with: servers, at: $1) }
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
                try step { $0.setReceiving(false, at: $1) }
                try settle(for: .seconds(600))
            }
            #expect(servers.allSatisfy { record(at: $0) == nil && bench.status($0) == .unregistered })
        }
    }

    @Test(arguments: [false, true]) func everythingContinuesAfterAKillAtAnyStep(_ storesBeforeKill: Bool) throws {
        var step = 1
        while true {
            var world = try World(killAt: step, storesBeforeKill: storesBeforeKill)
            try world.live()
            // Beyond the last step there is no kill.
            if world.stepsLeft > 0 { break }
            step += 1
        }
        #expect(step > 20)
    }

    @Test func recordsAreTheSameAfterTheirEncoding() throws {
        var world = try World(killAt: 0, storesBeforeKill: true)
        try world.live()
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["a", "b"]
        profile.contacts = [newKey(), newKey()]
        profile.contactsOnly = true
        try world.step { $0.register(profile, with: [newKey()], at: $1) }
        #expect(world.bench.stored.count >= 5)
        for (key, record) in world.bench.stored {
            let name = V01Record.name(of: key)
            let decoded = try V01Record(name, record.encoded())
            #expect(decoded == record && decoded.key == key && V01Record.isName(name))
        }
    }

    @Test func unreadableRecordsAreReported() {
        for bytes in [[], [1], [1, 2, 3], Array("\u{1}{}".utf8), Array("\u{2}{}".utf8)] as [[UInt8]] {
            for name in ["v0.1/own", "v0.1/server/x", "v0.1/registrant/x", "v0.1/message/x", "v0.1/what"] {
                #expect(throws: ClientStoreError.self) { try V01Record(name, bytes) }
            }
        }
    }
}
