import Foundation
import GRDB
import NodeAssembly
import Core
import StatusProtocol
import StatusServer
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@Suite(.timeLimit(.minutes(5)))
struct AdminExchangeTests {
    private let fixture: AdminFixture
    private let hash: String

    init() async throws {
        fixture = try await AdminFixture()
        hash = fixture.bob.keyHash.hex
    }

    private func list(_ arguments: String...) async throws -> [RegistrationRow] {
        try await run(["admin", "registrations", "list", "--json", "--data", fixture.data] + arguments).json()
    }

    @Test func filters() async throws {
        let all = try await list()
        #expect(all.count == 4)
        #expect(try await list("--platform", "apn") == Array(all.prefix(3)))
        #expect(try await list("--platform", "firebase") == [])
        #expect(try await list("--state", "registered") == Array(all.prefix(3)))
        #expect(try await list("--state", "unregistered") == [RegistrationRow(fixture.dave, state: "unregistered", version: 2)])
        #expect(try await list("--older-than", "1h") == [])
        #expect(try await list("--newer-than", "1h") == all)
        #expect(try await list("--state", "registered", "--newer-than", "1d", "--limit", "1", "--offset", "2") == [all[2]])
    }

    @Test func find() async throws {
        let tokens = fixture.folder.path + "/token"
        try write(AdminFixture.deviceToken + "\n", to: tokens)
        func find(_ arguments: String...) async throws -> Ended {
            try await run(["admin", "registrations", "find", "--data", fixture.data] + arguments)
        }
        #expect(try await find("installation-2", "--json").json() == [RegistrationRow(fixture.bobsOther)])
        #expect(try await find(String(hash.prefix(12)), "--json").json([RegistrationRow].self).count == 2)
        #expect(try await find("0x" + fixture.carol.identity.publicKey.hex, "--json").json() == [RegistrationRow(fixture.carol)])
        #expect(try await find("nobody").failure == "no matching registration")
        let byToken = try await find("--token-file", tokens, "--identity", fixture.server.path, "--json")
        #expect(try byToken.json([RegistrationRow].self).count == 3)
        #expect(!(byToken.output + byToken.errors).contains(AdminFixture.deviceToken))
        #expect(try await find("--token-file", tokens).status == 64)
        try write("another", to: tokens)
        #expect(try await find("--token-file", tokens, "--identity", fixture.server.path).status == 65)
        try write("", to: tokens)
        #expect(try await find("--token-file", tokens, "--identity", fixture.server.path).failure?.contains("contains no token") == true)
    }

    private struct Counts: Decodable, Equatable {
        let imported, kept: Int
    }

    @Test("An export gets its name once it is complete, replaces no file, and what a killed one left")
    func unfinishedExport() async throws {
        let file = fixture.folder.path + "/registrations"
        func export() async throws -> Ended { try await fixture.admin("registrations", "export", file, "--identity", fixture.server.path) }
        try write("half an export", to: file + ".partial")
        #expect(try await export().status == 0)
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
        let content = FileManager.default.contents(atPath: file)
        let again = try await export()
        #expect(again.status == 73 && again.failure == "registrations file \(file) exists already: choose another name")
        #expect(FileManager.default.contents(atPath: file) == content)
        for suffix in [".partial", ".partial.lock"] { #expect(!FileManager.default.fileExists(atPath: file + suffix)) }
    }

    /// A pipe must not encrypt or keep a sentence in place of the registrations.
    @Test func exportsToStandardOutput() async throws {
        let exported = try await fixture.admin("registrations", "export", "-", identified: true)
        #expect(exported.status == 0 && exported.failure?.hasPrefix("4 registrations exported to standard output") == true)
        let file = fixture.folder.path + "/registrations"
        try write(exported.output, to: file)
        let imported = try await fixture.admin("registrations", "import", file, "--json", identified: true)
        #expect(try imported.json() == Counts(imported: 0, kept: 4))
        #expect(try await fixture.admin("registrations", "export", "-", "--json", identified: true).status == 64)
        #expect(!FileManager.default.fileExists(atPath: "-"))
    }

    @Test(arguments: [["identity", "new", "--out", "-"], ["identity", "new-vapid", "--out", "-"], ["admin", "backup", "-"]])
    func noFileIsNamedAsStandardOutput(command: [String]) async throws {
        let ended = try await run(command + (command[0] == "admin" ? ["--data", fixture.data] : []))
        #expect(ended.status == 64 && ended.failure?.contains("can't be written to standard output (-)") == true, "\(ended.errors)")
        for name in ["-", "-.partial", "-.partial.lock"] { #expect(!FileManager.default.fileExists(atPath: name)) }
    }

    private func marks() throws -> [KeyHash: [Bool]] {
        let store = try NodeAssembly.existingStore(in: fixture.data, of: fixture.server.key)
        var marks: [KeyHash: [Bool]] = [:]
        try Registrations(store.sealer).forEachRecord(in: store) { record in
            if record.registration == nil { marks[record.key.keyHash] = [record.isNeverAsked, record.neverRegistered] }
            return true
        }
        try store.close()
        return marks
    }

    @Test("A tombstone is forgotten after an import as it would have been before")
    func tombstones() async throws {
        let never = TestClient(of: fixture.server.key.publicKey)
        let store = try NodeAssembly.existingStore(in: fixture.data, of: fixture.server.key)
        try await store.commit(Registrations.unregister(never.key, version: 2, at: .now()))
        try store.close()
        let file = fixture.folder.path + "/registrations"
        #expect(try await fixture.admin("registrations", "export", file, identified: true).status == 0)
        try FileManager.default.removeItem(atPath: fixture.data)
        #expect(try await fixture.admin("registrations", "import", file, identified: true).status == 0)
        #expect(try marks() == [fixture.dave.keyHash: [true, false], never.keyHash: [false, true]])
    }

    @Test("A damaged row stops an export, also one whose key column can't be read; nothing is left out silently")
    func damagedRow() async throws {
        let database = try DatabaseQueue(path: fixture.data + "/waku-push.sqlite")
        try await database.write { try $0.execute(sql: "UPDATE registration SET key_hash = x'00' WHERE id = 2") }
        try database.close()
        let file = fixture.folder.path + "/registrations"
        let ended = try await fixture.admin("registrations", "export", file, identified: true)
        #expect(ended.status == 65 && ended.failure?.contains("can't be opened: it was altered") == true, "\(ended.output)\(ended.errors)")
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    /// As after a daemon whose record of its identities failed: the row would become one of the file's identity.
    @Test func rowsOfAnIdentityThatIsNotRecordedAreNotExported() async throws {
        let other = PrivateKey.generate().publicKey
        let key = RegistrationKey(
            keyHash: fixture.bob.keyHash, installationID: fixture.bob.installationID, server: ServerMark(of: other))
        func commit(_ command: (any Store) -> StoreCommand<Void>) async throws {
            let store = try NodeAssembly.existingStore(in: fixture.data, of: fixture.server.key)
            try await store.commit(command(store))
            try store.close()
        }
        try await commit { _ in Registrations.unregister(key, version: 2, at: .now()) }
        let file = fixture.folder.path + "/registrations"
        let refused = try await fixture.admin("registrations", "export", file, identified: true)
        #expect(refused.status == 65 && refused.failure?.contains("identity that the database does not name") == true)
        #expect(!FileManager.default.fileExists(atPath: file))
        try await commit { StoreIdentities.add([fixture.server.key.publicKey, other], by: $0.sealer) }
        #expect(try await fixture.admin("registrations", "export", file, "--json", identified: true).json() == ["count": 5])
    }

    @Test func exportAndImport() async throws {
        let file = fixture.folder.path + "/registrations"
        #expect(try await fixture.admin("registrations", "export", file).status == 64)
        let exported = try await fixture.admin("registrations", "export", file, "--json", identified: true)
        #expect(try exported.json() == ["count": 4])
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        for secret in [AdminFixture.deviceToken, fixture.bob.accessToken.revealed, hash, "installation"] { #expect(!text.contains(secret)) }
        #expect(try await fixture.admin("registrations", "export", file, identified: true).status == 73)

        // Into nothing, and once more.
        let before = try await fixture.admin("registrations", "show", hash, "--reveal", identified: true).output
        let everything = try await fixture.admin("registrations", "list").output
        try FileManager.default.removeItem(atPath: fixture.data)
        #expect(
            try await fixture.admin("registrations", "import", file, "--json", identified: true).json() == Counts(imported: 4, kept: 0))
        #expect(
            try await fixture.admin("registrations", "import", file, "--json", identified: true).json() == Counts(imported: 0, kept: 4))
        #expect(try await fixture.admin("registrations", "show", hash, "--reveal", identified: true).output == before)
        #expect(try await fixture.admin("registrations", "list").output == everything)

        // Newer registrations are kept.
        let remove = try await fixture.admin("registrations", "remove", hash, "--installation", "installation-2", "--yes")
        #expect(remove.status == 0)
        _ = try await fixture.admin("registrations", "import", file, identified: true)
        #expect(try await list("--state", "unregistered").count == 2)
    }

    /// Such as `admin restore`: the rows would go into a database that is about to be replaced.
    @Test func nothingIsChangedWhileAnotherCommandHasTheFolder() async throws {
        let file = fixture.folder.path + "/registrations"
        #expect(try await fixture.admin("registrations", "export", file, identified: true).status == 0)
        let before = try await list()
        let lock = try DataFolder(locking: fixture.data, excludesCommands: true)
        for command in [["import", file, "--identity", fixture.server.path], ["remove", hash, "--yes"]] {
            let refused = try await run(["admin", "registrations"] + command + ["--data", fixture.data])
            #expect(refused.status == 69, "\(refused.output)")
        }
        #expect(try await list() == before)
        #expect(try await fixture.admin("registrations", "remove", hash).status == 0)
        lock.unlock()
    }

    /// Lines can't be removed, reordered or changed, and no other key decrypts them.
    @Test func alteredFilesAreRefused() async throws {
        let file = fixture.folder.path + "/registrations"
        #expect(try await fixture.admin("registrations", "export", file, "--state", "registered", identified: true).status == 0)
        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map(String.init)
        #expect(lines.count == 5)
        var changed = lines
        changed[2] = String(changed[2].dropLast(8)) + "AAAAAAA="
        let variants: [(lines: [String], problem: String)] = [
            (Array(lines.dropLast()), "is truncated"), (Array(lines.prefix(1)), "is truncated"),
            ([lines[0], lines[2], lines[1], lines[3], lines[4]], "line 2 "), ([lines[0], lines[1], lines[2], lines[4]], "line 4 "),
            (changed, "line 3 "), (Array(lines.dropFirst()), "is not a registrations file"), ([], "is not a registrations file"),
        ]
        for (index, variant) in variants.enumerated() {
            let path = fixture.folder.path + "/variant-\(index)"
            try write(variant.lines.map { $0 + "\n" }.joined(), to: path)
            let ended = try await fixture.admin("registrations", "import", path, identified: true)
            #expect(ended.status == 65)
            #expect(ended.failure?.contains(variant.problem) == true, "\(index): \(ended.errors)")
        }
        let other = try KeyFile(in: fixture.folder, "other.key")
        let elsewhere = try await run(
            "admin", "registrations", "import", file, "--data", fixture.folder.path + "/elsewhere", "--identity", other.path)
        #expect(elsewhere.status == 65)
        #expect(elsewhere.failure?.contains("belongs to another identity") == true)
    }
}
