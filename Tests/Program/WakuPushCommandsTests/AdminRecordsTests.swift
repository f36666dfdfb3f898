import Delivery
import Foundation
import GRDB
import NodeAssembly
import Core
import StatusProtocol
import StatusV01Server
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import WakuPushCommands

/// Records of version 0.1 in a data folder as a daemon leaves it: Bob has two devices, Dave had one.
@Suite("admin records", .timeLimit(.minutes(5)))
struct AdminRecordsTests {
    private let fixture: AdminFixture
    private let bob: V01Account
    private let dave: V01Account

    init() async throws {
        fixture = try await AdminFixture()
        let server = fixture.server.key.publicKey
        bob = V01Account(
            of: server, devices: [V01Account.device("a", token: AdminFixture.deviceToken), V01Account.device("b", tokenType: 2)])
        dave = V01Account(of: server)
        let store = try NodeAssembly.existingStore(in: fixture.data, of: fixture.server.key)
        let records = Records(store.sealer)
        for (account, version, payload) in [(bob, UInt64(3), bob.preferences(version: 3).encoded()), (dave, 2, nil)] {
            let record = RecordExport(
                keyHash: account.keyHash, version: version, changedAt: .now(), preferences: payload, neverRegistered: payload == nil)
            #expect(try await store.commit(records.merge(record)))
        }
        try store.close()
    }

    private struct Row: Decodable, Equatable {
        let keyHash, state: String
        let version: UInt64
    }

    @Test func list() async throws {
        let rows = try await fixture.admin("records", "list", "--json").json([Row].self)
        #expect(
            rows == [
                Row(keyHash: bob.keyHash.hex, state: "registered", version: 3),
                Row(keyHash: dave.keyHash.hex, state: "unregistered", version: 2),
            ])
        #expect(try await fixture.admin("records", "list", "--limit", "1", "--offset", "1", "--json").json([Row].self) == [rows[1]])
    }

    @Test func show() async throws {
        let closed = try await fixture.admin("records", "show", String(bob.keyHash.hex.prefix(20)))
        #expect(closed.output.contains(bob.keyHash.hex) && !closed.output.contains("installation"))
        let hidden = try await fixture.admin("records", "show", bob.identity.publicKey.hex, identified: true)
        #expect(hidden.output.contains("firebase"))
        for secret in [bob.accessToken.revealed, AdminFixture.deviceToken] { #expect(!hidden.output.contains(secret)) }
        let shown = try await fixture.admin("records", "show", bob.keyHash.hex, "--reveal", identified: true)
        for secret in [bob.accessToken.revealed, AdminFixture.deviceToken] { #expect(shown.output.contains(secret)) }
        #expect(try await fixture.admin("records", "show", hexString(randomBytes(32))).status == 65)
    }

    @Test func remove() async throws {
        #expect(try await fixture.admin("records", "remove", bob.keyHash.hex).output.contains("would remove"))
        #expect(try await fixture.admin("records", "remove", bob.keyHash.hex, "--yes").status == 0)
        #expect(try await fixture.admin("records", "remove", bob.keyHash.hex, "--yes").status == 65)
        let rows = try await fixture.admin("records", "list", "--json").json([Row].self)
        #expect(rows.map(\.state) == ["unregistered", "unregistered"])
        // The version stays.
        #expect(rows.map(\.version) == [3, 2])
    }

    /// The version of a record belongs to the whole account.
    @Test func recordsAreLeftWhenOneInstallationOfAnIdentityIsRemoved() async throws {
        let store = try NodeAssembly.existingStore(in: fixture.data, of: fixture.server.key)
        try await store.commit(StoreIdentities.add([fixture.server.key.publicKey, PrivateKey.generate().publicKey], by: store.sealer))
        try store.close()
        func remove(_ arguments: String...) async throws -> Ended {
            try await run(
                ["admin", "registrations", "remove", "--registered-with", fixture.server.publicKey, "--data", fixture.data] + arguments)
        }
        let one = try await remove("--installation", "installation-2", "--yes")
        #expect(one.output == "removed \(fixture.bob.keyHash.hex.prefix(16))… installation-2\n", "\(one.errors)")
        #expect(try await fixture.admin("records", "list", "--json").json([Row].self).map(\.state) == ["registered", "unregistered"])
        #expect(try await remove("--yes").output.hasPrefix("removed \(bob.keyHash.hex.prefix(16))… (version 0.1)\n"))
    }

    @Test func nothingIsRemovedWhileAnotherCommandHasTheFolder() async throws {
        let lock = try DataFolder(locking: fixture.data)
        #expect(try await fixture.admin("records", "remove", bob.keyHash.hex, "--yes").status == 69)
        #expect(try await fixture.admin("records", "remove", bob.keyHash.hex).output.contains("would remove"))
        lock.unlock()
    }

    @Test func aRecordWhoseKeyCannotBeReadStopsAnExport() async throws {
        let database = try DatabaseQueue(path: fixture.data + "/waku-push.sqlite")
        try await database.write { try $0.execute(sql: "UPDATE v01_record SET key_hash = x'00' WHERE id = 1") }
        try database.close()
        let ended = try await fixture.admin("registrations", "export", fixture.folder.path + "/registrations", identified: true)
        #expect(ended.status == 65 && ended.failure?.contains("can't be opened: it was altered") == true, "\(ended.output)\(ended.errors)")
    }

    @Test func exportAndImport() async throws {
        struct Counts: Decodable, Equatable { let imported, kept: Int }
        let file = fixture.folder.path + "/registrations"
        #expect(try await fixture.admin("registrations", "export", file, identified: true).status == 0)
        let other = fixture.folder.path + "/other"
        let arguments = ["admin", "registrations", "import", file, "--data", other, "--identity", fixture.server.path, "--json"]
        #expect(try await run(arguments).json(Counts.self) == Counts(imported: 6, kept: 0))
        #expect(try await run(arguments).json(Counts.self) == Counts(imported: 0, kept: 6))
        let store = try NodeAssembly.existingStore(in: other, of: fixture.server.key)
        #expect(try store.read(Records(store.sealer).preferences(of: bob.keyHash)) == bob.preferences(version: 3))
        var unfounded: [V01.KeyHash] = []
        try Records(store.sealer).forEach(in: store) { record in
            if record.neverRegistered { unfounded.append(record.keyHash) }
            return true
        }
        #expect(unfounded == [dave.keyHash])
        try store.close()
        let some = fixture.folder.path + "/some"
        #expect(try await fixture.admin("registrations", "export", some, "--platform", "apn", identified: true).output.hasPrefix("3 "))
    }

    @Test("An access token that a record had stays its account's after an export and an import")
    func exportOfRetiredTokens() async throws {
        struct Counts: Decodable, Equatable { let imported, kept: Int }
        var store = try NodeAssembly.existingStore(in: fixture.data, of: fixture.server.key)
        var renewed = bob
        renewed.accessToken = V01Account.newToken()
        let renewal = RecordExport(
            keyHash: bob.keyHash, version: 4, changedAt: .now(), preferences: renewed.preferences(version: 4).encoded())
        #expect(try await store.commit(Records(store.sealer).merge(renewal)))
        try store.close()
        let (file, other) = (fixture.folder.path + "/registrations", fixture.folder.path + "/other")
        #expect(try await fixture.admin("registrations", "export", file, identified: true).status == 0)
        let arguments = ["admin", "registrations", "import", file, "--data", other, "--identity", fixture.server.path, "--json"]
        #expect(try await run(arguments).json(Counts.self) == Counts(imported: 7, kept: 0))
        #expect(try await run(arguments).json(Counts.self) == Counts(imported: 0, kept: 7))
        store = try NodeAssembly.existingStore(in: other, of: fixture.server.key)
        for (account, isStored) in [(V01Account(of: bob.server, accessToken: bob.accessToken), false), (bob, true)] {
            let export = RecordExport(
                keyHash: account.keyHash, version: 9, changedAt: .now(), preferences: account.preferences(version: 9).encoded())
            #expect(try await store.commit(Records(store.sealer).merge(export)) == isStored)
        }
        try store.close()
    }

    /// An earlier release stored them as received.
    @Test func registrationsThatCannotBeParsedAreLeftOutOfAnImport() async throws {
        let file = fixture.folder.path + "/registrations"
        var writer = try RegistrationsFileWriter(file, identity: fixture.server.key)
        let refused = Data([0x0A])
        let record = RegistrationsFile.Line.Record(
            keyHash: Data(fixture.bob.keyHash.bytes), installation: Data("a".utf8), version: 1, changedAt: 1, registration: refused,
            neverAsked: nil, neverRegistered: nil)
        func line(_ account: V01Account, _ preferences: Data) -> RegistrationsFile.Line {
            RegistrationsFile.Line(
                v01: RegistrationsFile.Line.V01Record(
                    keyHash: Data(account.keyHash.bytes), version: 3, changedAt: 1, preferences: preferences, neverRegistered: nil))
        }
        for line in [
            RegistrationsFile.Line(record: record), line(dave, refused), line(bob, Data(bob.preferences(version: 3).encoded())),
        ] { #expect(writer.add { line }) }
        try writer.finish()
        let other = fixture.folder.path + "/other"
        let imported = try await run(["admin", "registrations", "import", file, "--data", other, "--identity", fixture.server.path])
        #expect(imported.status == 0, "\(imported.errors)")
        #expect(imported.output.contains("1 imported, 0 kept") && imported.output.contains("2 left out: registrations of an earlier"))
    }

    @Test func statistics() async throws {
        struct Numbers: Decodable { let registrants, v01Records, v01Devices, v01Tombstones: Int }
        let numbers = try await fixture.admin("registrations", "stats", "--json").json(Numbers.self)
        #expect(numbers.registrants == 2 && numbers.v01Records == 1 && numbers.v01Devices == 2 && numbers.v01Tombstones == 1)
    }

    @Test func outboxNamesTheProtocolAndTheDevice() async throws {
        struct OutboxRow: Decodable { let `protocol`, keyHash, installation: String }
        let store = try NodeAssembly.existingStore(in: fixture.data, of: fixture.server.key)
        // Rows of devices are numbered from 1.
        let waiting = DeliveryStorage.enqueue(
            DeliveryID(hashing: [1]), for: DeviceID(V01Storage.protocolNumber, row: 1), payload: [],
            expires: Timestamp(rawValue: 1_800_000_000_000_000_000), by: store.sealer)
        try await store.commit(StoreCommand.change([waiting]))
        try store.close()
        let rows = try await fixture.admin("outbox", "list", "--json").json([OutboxRow].self)
        #expect(rows.map(\.protocol) == ["status", "status-v0.1"])
        #expect(rows.map(\.keyHash) == [fixture.bob.keyHash.hex, bob.keyHash.hex])
        #expect(rows.map(\.installation) == ["installation-1", "a"])
    }
}
