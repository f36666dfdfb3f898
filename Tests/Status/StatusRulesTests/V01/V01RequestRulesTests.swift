import Core
import StatusProtocol
@testable import StatusRules
import TestSupport
import Testing
import WakuCrypto

/// `V01.md`, section 5.
@Suite("Version 0.1: rules of requests")
struct V01RequestRulesTests {
    private let server = PrivateKey.generate().publicKey
    private let chat = V01.chatHash("a chat")

    private func request(_ entries: [V01.PushNotification], message: [UInt8] = [1], messageID: String = "id") -> V01.Request {
        V01.Request(requests: entries, message: message, messageID: Array(messageID.utf8), ackKey: [])
    }

    private func decide(
        _ request: V01.Request, _ accounts: [V01Account], known: [DeliveryID: DeliveryState] = [:]
    ) -> V01.RequestDecision {
        V01.RequestRules.decide(request) { token in
            accounts.first { $0.accessToken == token }.map { V01.SelectedRecord(registrant: $0.keyHash, preferences: $0.preferences()) }
        } delivery: {
            known[$0]
        }
    }

    private func account(_ devices: V01.Device...) -> V01Account { V01Account(of: server, devices: devices) }

    /// Whether nothing is notified, awaited or refused.
    private func isNothing(_ decision: V01.RequestDecision) -> Bool {
        decision.started.isEmpty && decision.awaited.isEmpty && !decision.hasBadToken && !decision.isRefused
    }

    @Test func aRequestNamesRecordsAndAMessage() {
        let entry = account(V01Account.device()).entry()
        #expect(V01.RequestRules.isComplete(request([entry])))
        #expect(!V01.RequestRules.isComplete(request([])))
        #expect(!V01.RequestRules.isComplete(request([entry], messageID: "")))
    }

    @Test func aTokenSelectsARecordWithAllItsDevices() {
        let account = account(V01Account.device("a"), V01Account.device("b", tokenType: 2))
        let decision = decide(request([account.entry(chat: chat)]), [account])
        #expect(decision.started.map(\.device) == account.devices)
        #expect(decision.started.map(\.platform) == [.apn, .firebase])
        #expect(decision.started.allSatisfy { $0.registrant == account.keyHash && $0.chatID == chat })
        #expect(!decision.hasBadToken && !decision.isRefused && decision.awaited.isEmpty)
    }

    @Test func aTokenThatSelectsNothingIsBadAndTheOthersAreNotified() {
        let account = account(V01Account.device())
        let bad = V01.PushNotification(accessToken: V01Account.newToken(), chatID: chat)
        for entries in [[bad, account.entry()], [account.entry(), bad]] {
            let decision = decide(request(entries), [account])
            #expect(decision.hasBadToken)
            #expect(decision.started.count == 1)
        }
    }

    @Test func devicesThatAreNotEnabledAreNotNotified() {
        var without = V01Account.device("none")
        without.filters = nil
        let account = account(V01Account.device("a", isEnabled: false), without)
        #expect(isNothing(decide(request([account.entry()]), [account])))
    }

    @Test func blockedChatsAreComparedByWhatTheyStandFor() {
        let text = Array(hexString(chat).utf8)
        for listed in [chat, text] {
            let account = account(V01Account.device("a", blocked: [[1], listed]), V01Account.device("b"))
            for named in [chat, text] {
                let decision = decide(request([account.entry(chat: named)]), [account])
                #expect(decision.started.map(\.device.installationID.string) == ["b"])
                #expect(decision.started.map(\.chatID) == [chat])
            }
        }
    }

    @Test func anEmptyEntryBlocksNothing() {
        let account = account(V01Account.device(blocked: [[]]))
        for named in [chat, []] { #expect(decide(request([account.entry(chat: named)]), [account]).started.count == 1) }
    }

    @Test("The limit of devices counts filtered ones too, and each record once; a record that does not fit is not notified")
    func deviceLimit() {
        let open = (0..<2).map { _ in account(V01Account.device("a"), V01Account.device("b")) }
        let filtered = account(V01Account.device("a", blocked: [chat]), V01Account.device("b", isEnabled: false))
        for middle in [open[1], filtered] {
            let accounts = [open[0], middle, account(V01Account.device("a"))]
            let entries = ([open[0]] + accounts).map { $0.entry(chat: chat) }
            for (limit, fits) in [(4, false), (5, true)] {
                let decision = V01.RequestRules.decide(request(entries), room: V01.RecordRoom(limit: limit)) { token in
                    accounts.first { $0.accessToken == token }.map {
                        V01.SelectedRecord(registrant: $0.keyHash, preferences: $0.preferences())
                    }
                } delivery: { _ in
                    nil
                }
                // The same whether or not the middle record is filtered.
                #expect(decision.isRefused == !fits)
                #expect(decision.started.contains { $0.registrant == accounts[2].keyHash } == fits)
            }
        }
    }

    @Test("Later entries may notify as many devices as earlier ones left of the limit")
    func roomOfSeveralParts() {
        let accounts = (0..<2).map { _ in account(V01Account.device("a"), V01Account.device("b")) }
        func decide(_ account: V01Account, _ room: V01.RecordRoom) -> V01.RequestDecision {
            V01.RequestRules.decide(request([account.entry()]), room: room) { _ in
                V01.SelectedRecord(registrant: account.keyHash, preferences: account.preferences())
            } delivery: { _ in
                nil
            }
        }
        let first = decide(accounts[0], V01.RecordRoom(limit: 3))
        #expect(!first.isRefused && !decide(accounts[0], first.room).isRefused && decide(accounts[1], first.room).isRefused)
    }

    @Test func anAllowedKeyListIsNoFilter() {
        let account = account(V01Account.device(allowed: [[1]]))
        #expect(decide(request([account.entry()]), [account]).started.count == 1)
    }

    @Test func aDeviceIsNotifiedOnceForAMessageID() {
        let account = account(V01Account.device())
        let request = request([account.entry(), account.entry(chat: [9])])
        let first = decide(request, [account])
        #expect(first.started.count == 1)
        let id = first.started[0].id
        #expect(isNothing(decide(request, [account], known: [id: .accepted])))
        #expect(decide(request, [account], known: [id: .waiting]).awaited == [id])
        #expect(decide(self.request([account.entry()], messageID: "other"), [account]).started.map(\.id) != [id])
    }

    @Test func notificationsOfOnePlatformAndChatStandTogether() {
        let accounts = (0..<3).map { _ in account(V01Account.device("a"), V01Account.device("b", tokenType: 2)) }
        let chats = [chat, V01.chatHash("other"), chat]
        let decision = decide(request(zip(accounts, chats).map { $0.entry(chat: $1) }), accounts)
        let groups = decision.started.map { "\($0.platform) \($0.chatID == chat)" }
        #expect(groups == ["apn true", "apn true", "firebase true", "firebase true", "apn false", "firebase false"])
    }

    @Test func contentTooLargeForAppleAndGoogleIsRefused() {
        let large = [UInt8](repeating: 1, count: V01.Request.contentByteLimit)
        // A blocked sender must not learn it by the size.
        for device in [V01Account.device(), V01Account.device(blocked: [chat]), V01Account.device(isEnabled: false)] {
            let account = account(device)
            let decision = decide(request([account.entry(chat: chat)], message: large), [account])
            #expect(decision.isRefused && decision.started.isEmpty)
        }
    }

    @Test func aBadTokenWinsOverAnInternalError() {
        #expect(V01.RequestDecision.error(hasBadToken: true, areAllTaken: false) == .badToken)
        #expect(V01.RequestDecision.error(hasBadToken: true, areAllTaken: true) == .badToken)
        #expect(V01.RequestDecision.error(hasBadToken: false, areAllTaken: false) == .internalError)
        #expect(V01.RequestDecision.error(hasBadToken: false, areAllTaken: true) == nil)
    }

    @Test func deliveriesOfTheTwoProtocolsDiffer() {
        let (identity, installation) = (PrivateKey.generate().publicKey, InstallationID("a"))
        let deployed = DeliveryID(messageID: [1], key: RegistrationKey(keyHash: KeyHash(of: identity), installationID: installation))
        #expect(DeliveryID(messageID: [1], registrant: V01.KeyHash(of: identity), installationID: installation) != deployed)
    }
}
