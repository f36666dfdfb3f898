import Foundation
import GRDB
import NodeAssembly
import Core
import SessionProtocol
import SessionServer
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import WakuPushCommands

/// `admin subscriptions`, and export and import of subscriptions, on the data folder of a stopped daemon.
@Suite(.timeLimit(.minutes(5)))
struct AdminSubscriptionsTests {
    private let folder: TemporaryFolder
    private let server: KeyFile
    private let account: SessionAccount
    private let devices = [SessionDevice(.apns), SessionDevice(.firebase), SessionDevice(.huawei)]
    private var data: String { folder.path + "/data" }

    init() async throws {
        folder = try TemporaryFolder()
        server = try KeyFile(in: folder, "id.key")
        account = try .sessionID()
        let other = try SessionAccount.group()
        try FileManager.default.createDirectory(atPath: folder.path + "/data", withIntermediateDirectories: true)
        let store = try NodeAssembly.store(in: folder.path + "/data", of: server.key)
        let requests: [SessionRequest] = [
            .subscribe(account.subscription(devices[0], namespaces: [0, 1], at: .now - 3 * .day)),
            .subscribe(account.subscription(devices[1])), .subscribe(other.subscription(devices[2])),
            .subscribe(other.subscription(devices[1])), .unsubscribe(other.unsubscription(devices[1])),
        ]
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases))
        try await store.commit(Subscriptions(store.sealer).apply(requests, rules, at: .now) { _ in nil })
        try store.close()
    }

    private func admin(_ arguments: String..., identified: Bool = true) async throws -> Ended {
        try await run(["admin"] + arguments + ["--data", data] + (identified ? ["--identity", server.path] : []))
    }

    private struct Row: Decodable {
        let account: String?
        let accountHash, service: String
    }

    @Test func listsAccountsWithTheKeyAndHashesWithout() async throws {
        let rows: [Row] = try await admin("subscriptions", "list", "--json").json()
        #expect(rows.map(\.service) == ["apns", "firebase", "huawei"])
        #expect(rows.map(\.account).prefix(2) == [account.id.hex, account.id.hex])
        #expect(rows[0].accountHash == rows[1].accountHash && rows[0].accountHash != rows[2].accountHash)
        let without: [Row] = try await admin("subscriptions", "list", "--json", identified: false).json()
        #expect(without.allSatisfy { $0.account == nil })
        #expect(without.map(\.accountHash) == rows.map(\.accountHash))
        let text = try await admin("subscriptions", "list").output
        #expect(text.contains(account.id.hex) && text.contains("huawei"))
    }

    @Test func listIsFiltered() async throws {
        func services(_ arguments: String...) async throws -> [String] {
            let ended = try await run(["admin", "subscriptions", "list", "--json", "--data", data] + arguments)
            return try ended.json([Row].self).map(\.service)
        }
        #expect(try await services("--service", "firebase") == ["firebase"])
        #expect(try await services("--older-than", "2d") == ["apns"])
        #expect(try await services("--newer-than", "2d") == ["firebase", "huawei"])
        #expect(try await services("--limit", "1", "--offset", "1") == ["firebase"])
        #expect(try await run("admin", "subscriptions", "list", "--data", data, "--service", "fcm").status == 64)
    }

    @Test func showHidesTokensUnlessTheyAreRevealed() async throws {
        let hidden = try await admin("subscriptions", "show", account.id.hex)
        #expect(hidden.status == 0 && hidden.output.contains("0, 1"))
        #expect(!devices.contains { hidden.output.contains($0.token) })
        let shown = try await admin("subscriptions", "show", account.id.hex, "--reveal").output
        #expect(shown.contains(devices[0].token) && shown.contains(devices[1].token) && !shown.contains(devices[2].token))
        #expect(try await admin("subscriptions", "show", account.id.hex, identified: false).status == 64)
        #expect(try await admin("subscriptions", "show", "05ab").status == 64)
        #expect(try await admin("subscriptions", "show", try SessionAccount.group().id.hex).status == 65)
    }

    private struct Numbers: Decodable, Equatable {
        let accounts: Int
        let devices: [String: Int]
        let endedNames: Int
    }

    @Test func statsCountsDevicesByService() async throws {
        let numbers: Numbers = try await admin("subscriptions", "stats", "--json", identified: false).json()
        let devices = ["apns": 1, "apns-sandbox": 0, "firebase": 1, "huawei": 1, "webpush": 0]
        #expect(numbers == Numbers(accounts: 2, devices: devices, endedNames: 1))
        #expect(try await admin("subscriptions", "stats").output.contains("names of ended ones"))
    }

    private struct Counts: Decodable, Equatable {
        let imported, kept: Int
    }

    @Test func aDamagedSubscriptionStopsAnExport() async throws {
        let database = try DatabaseQueue(path: data + "/waku-push.sqlite")
        try await database.write { try $0.execute(sql: "UPDATE session_subscription SET signed_at = signed_at + 1 WHERE id = 1") }
        try database.close()
        let ended = try await admin("registrations", "export", folder.path + "/registrations")
        #expect(ended.status == 65 && ended.failure?.contains("can't be opened: it was altered") == true, "\(ended.output)\(ended.errors)")
    }

    @Test func exportAndImportTakeSubscriptionsAndTheNamesOfEndedOnesAlong() async throws {
        let file = folder.path + "/registrations"
        #expect(try await admin("registrations", "export", file, "--json").json() == ["count": 4])
        let text = try String(contentsOfFile: file, encoding: .utf8)
        for secret in devices.map(\.token) + [account.id.hex] { #expect(!text.contains(secret)) }
        let before = try await admin("subscriptions", "show", account.id.hex, "--reveal").output
        try FileManager.default.removeItem(atPath: data)
        #expect(try await admin("registrations", "import", file, "--json").json() == Counts(imported: 4, kept: 0))
        #expect(try await admin("registrations", "import", file, "--json").json() == Counts(imported: 0, kept: 4))
        #expect(try await admin("subscriptions", "show", account.id.hex, "--reveal").output == before)
        let numbers: Numbers = try await admin("subscriptions", "stats", "--json").json()
        #expect(numbers.accounts == 2 && numbers.endedNames == 1)
    }

    @Test("An earlier release reads a file until the first kind of line that it does not know: Web Push and times ahead are last")
    func exportForEarlierReleases() async throws {
        let receiver = WebPushReceiver()
        let keys = try #require(WebPushKeys(publicKey: receiver.key.publicKey, secret: receiver.secret))
        let subscription = try #require(PushSubscription(endpoint: "https://push.example/a", keys: keys))
        let phone = SessionDevice(.webPush, token: String(decoding: subscription.json, as: UTF8.self))
        let store = try NodeAssembly.existingStore(in: data, of: server.key)
        // Before and after the Web Push device, by row.
        let requests: [SessionRequest] = [
            .subscribe(account.subscription(phone)), .subscribe(account.subscription(SessionDevice(.huawei))),
            .subscribe(try SessionAccount.group().subscription(devices[0], at: .now + 3_600)),
        ]
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases))
        try await store.commit(Subscriptions(store.sealer).apply(requests, rules, at: .now) { _ in nil })
        try store.close()
        let file = folder.path + "/registrations"
        #expect(try await admin("registrations", "export", file).status == 0)
        var lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
        let header = try JSONDecoder().decode(RegistrationsFile.Header.self, from: Data(lines.removeFirst().utf8))
        let kinds = try lines.enumerated().map { index, text in
            let sealed = try #require(Data(base64Encoded: String(text)))
            let plain = try AESGCM.open(
                Array(sealed), key: RegistrationsFile.key(of: server.key), layout: .nonceFirst,
                associatedData: RegistrationsFile.binding(header.file, index))
            let line = try JSONDecoder().decode(RegistrationsFile.Line.self, from: Data(plain))
            if let subscription = line.subscription { return subscription.service }
            return line.unsubscribedName != nil ? "ended" : line.aheadTime != nil ? "ahead" : "end"
        }
        #expect(kinds == ["ended", "apns", "firebase", "huawei", "huawei", "apns", "webpush", "ahead", "end"])
    }

    @Test("Names of ended subscriptions are not imported into a database that was moved to the identity: they differ there")
    func importIntoAMovedDatabase() async throws {
        let file = folder.path + "/registrations"
        #expect(try await admin("registrations", "export", file).status == 0)
        try FileManager.default.removeItem(atPath: data)
        let former = PrivateKey.generate()
        let locked = try DataFolder(locking: data)
        try NodeAssembly.store(in: data, of: former).close()
        try StorageKeyRotation.run(
            Sealer.storageKey(of: former), in: locked, parts: NodeAssembly.parts, StoreMove(from: former, to: server.key))
        locked.unlock()
        let imported = try await admin("registrations", "import", file)
        #expect(imported.output.contains("3 imported, 0 kept"), "\(imported.output)")
        #expect(imported.output.contains("1 left out: names of Session subscriptions"), "\(imported.output)")
        let numbers: Numbers = try await admin("subscriptions", "stats", "--json").json()
        #expect(numbers.accounts == 2 && numbers.endedNames == 0)
        // Its own names are.
        let own = folder.path + "/own"
        let store = try NodeAssembly.existingStore(in: data, of: server.key)
        let request = SessionRequest.unsubscribe(account.unsubscription(devices[0]))
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases))
        try await store.commit(Subscriptions(store.sealer).apply([request], rules, at: .now) { _ in nil })
        try store.close()
        #expect(try await admin("registrations", "export", own).status == 0)
        let again = try await admin("registrations", "import", own, "--json").json([String: Int].self)
        #expect(again == ["imported": 0, "kept": 3, "leftOut": 0, "unparsable": 0])
    }

    @Test func checkBackupAndRotationCoverSubscriptions() async throws {
        let before = try await admin("subscriptions", "show", account.id.hex, "--reveal").output
        #expect(try await admin("check").output.contains("Session subscriptions"))
        let backup = folder.path + "/backup"
        #expect(try await admin("backup", backup).status == 0)
        #expect(try await admin("rotate-storage-key").status == 0)
        #expect(try await admin("subscriptions", "show", account.id.hex, "--reveal").output == before)
        #expect(try await admin("check").status == 0)
    }
}
