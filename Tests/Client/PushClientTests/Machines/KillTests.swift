import StatusProtocol
import Testing
import Core
import WakuCrypto

@testable import PushClient

/// The process is killed at each step of a client's day: before its changes are stored, or after that and before its actions are performed.
@Suite struct KillTests {
    private struct World {
        var bench = MachineBench()
        let servers = (0..<2).map { _ in newKey() }
        let friend = Friend()
        var versions: [PublicKey: UInt64] = [:]
        var registered: [PublicKey: PushNotificationRegistration] = [:]
        var notified: Set<[UInt8]> = []
        var stepsLeft: Int
        let keepsBeforeKill: Bool

        init(killAt step: Int, keepsBeforeKill: Bool) {
            stepsLeft = step
            self.keepsBeforeKill = keepsBeforeKill
        }

        /// Stores and queues the output, unless this is the step of the kill.
        mutating func step(_ body: (inout ClientMachine, Timestamp) -> ClientMachine.Output) {
            let output = body(&bench.machine, bench.now)
            guard !output.isEmpty else { return }
            stepsLeft -= 1
            if stepsLeft == 0 {
                if keepsBeforeKill { for (key, record) in output.changes { bench.stored[key] = record } }
                bench.restart(after: .seconds(1))
            } else {
                bench.take(output)
            }
        }

        /// Lets servers and network answer at once.
        mutating func settle(for duration: Duration) throws {
            let end = bench.now + duration
            while true {
                for action in bench.takeActions() { try handle(action) }
                guard bench.actions.isEmpty else { continue }
                guard let next = bench.machine.nextWakeUp, next <= end else { break }
                bench.now = max(bench.now, next)
                step { $0.wake(at: $1) }
            }
            bench.now = end
        }

        private mutating func handle(_ action: ClientMachine.Action) throws {
            switch action {
            case .register(let server, let sent):
                let requestID = sent.requestID
                step { $0.registrationPublished(requestID, to: server, isPublished: true, at: $1) }
                let registration = try bench.registration(sent.sealed)
                let isNewer = registration.version > versions[server] ?? 0
                if isNewer {
                    versions[server] = registration.version
                    registered[server] = registration.unregister ? nil : registration
                }
                let response = PushNotificationRegistrationResponse(error: isNewer ? nil : .versionMismatch, requestID: requestID)
                step { $0.registrationAnswered(by: server, response, at: $1) }
            case .query(let ticket, let registrant, _):
                step { $0.queryPublished(ticket, isPublished: true, at: $1) }
                for server in servers {
                    if registrant == friend.key {
                        let row = friend.row(at: server)
                        step { $0.queryAnswered(ticket, by: server, rows: [row], at: $1) }
                    } else if let registration = registered[server] {
                        let row = PushNotificationQueryInfo(
                            accessToken: registration.accessToken, installationID: registration.installationID,
                            publicKey: KeyHash(of: registrant).bytes, allowedKeyList: [], grant: registration.grant,
                            version: registration.version, serverPublicKey: server.compressed)
                        step { $0.queryAnswered(ticket, by: server, rows: [row], at: $1) }
                    }
                }
            case .request(let ticket, let server, let request):
                step { $0.requestPublished(ticket, isPublished: true, at: $1) }
                notified.insert(request.messageID)
                let reports = PushNotificationRequest(request).requests.map {
                    PushNotificationReport(error: nil, publicKey: $0.publicKey, installationID: $0.installationID)
                }
                let response = PushNotificationResponse(messageID: request.messageID, reports: reports)
                step { $0.requestAnswered(ticket, by: server, response, at: $1) }
            case .advertise(let advertisement):
                let count = advertisement.pushNotificationInfo.count
                step { $0.advertisementPublished(rowCount: count, isPublished: true, at: $1) }
            case .lookUp(let registrants): step { $0.lookUpEnded(registrants, .found, at: $1) }
            case .watch, .unwatch, .report: break
            }
        }

        /// The application's calls. They are repeated after a kill, because the application can't know which of them succeeded.
        mutating func live() throws {
            let list = servers.map { PushServer(key: $0) }
            var changed = DeviceProfile.phone
            changed.contactsOnly = true
            changed.contacts = [friend.key]
            for profile in [DeviceProfile.phone, changed] {
                for _ in 0..<2 {
                    step { $0.register(profile, with: list, at: $1) }
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
                step { $0.notify(message, chat: StatusHashes.chat(message.chatID), author: [1], at: $1) }
                try settle(for: .seconds(120))
            }
            #expect(notified == [[1]] && bench.machine.notifications.messages[[1]]?.outcomes.count == 1)
            for _ in 0..<2 {
                step { $0.setReceiving(false, at: $1) }
                try settle(for: .seconds(600))
            }
            #expect(registered.isEmpty && bench.machine.isSettled(servers))
        }
    }

    @Test(arguments: [false, true]) func everythingContinuesAfterAKillAtAnyStep(_ keepsBeforeKill: Bool) throws {
        var step = 1
        while true {
            var world = World(killAt: step, keepsBeforeKill: keepsBeforeKill)
            try world.live()
            // Beyond the last step there is no kill.
            if world.stepsLeft > 0 { break }
            step += 1
        }
        #expect(step > 25)
    }

    /// Stored records, encoded and decoded as in a store, are unchanged.
    @Test func recordsAreTheSameAfterTheirEncoding() throws {
        var world = World(killAt: 0, keepsBeforeKill: true)
        try world.live()
        var profile = DeviceProfile.phone
        profile.blockedChats = ["a", "b"]
        profile.blockedAuthors = [newKey()]
        profile.contacts = [newKey(), newKey()]
        profile.contactsOnly = true
        let server = PushServer(key: world.servers[0], dialect: .published)
        world.step { $0.register(profile, with: [server], at: $1) }
        #expect(world.bench.stored.count >= 4)
        for (key, record) in world.bench.stored {
            let name = ClientRecord.name(of: key)
            let decoded = try ClientRecord(name, record.encoded())
            #expect(decoded == record && decoded.key == key)
        }
    }

    @Test func recordsThatCanNotBeReadAreReported() {
        for bytes in [[], [1], [1, 2, 3], Array("\u{1}{}".utf8), Array("\u{2}{}".utf8)] as [[UInt8]] {
            for name in ["own", "server/x", "registrant/x", "message/x", "what"] {
                #expect(throws: ClientStoreError.self) { try ClientRecord(name, bytes) }
            }
        }
    }
}
