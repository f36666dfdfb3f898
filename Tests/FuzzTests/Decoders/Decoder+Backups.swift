import Core
import Foundation
import GRDB
import StatusProtocol
import Storage
import TestSupport
import WakuCrypto

@testable import StatusServer
@testable import StoreSQLite
@testable import WakuPushCommands

/// Files by which an operator saves registrations: backups of the database, and exported registrations.
extension Decoder {
    static var backups: [Decoder] { [database, registrations] }

    private struct Refused: Error {}

    private static let identity = (try? PrivateKey(bytes: [UInt8](repeating: 9, count: 32))) ?? .generate()
    private static let storageKey = Sealer.storageKey(of: identity)
    private static let registration = StatusGoVectors.recorded.messages.lazy.compactMap { $0.registration?.plaintext?.bytes }.first

    private static func withFile<Result>(_ bytes: [UInt8], _ body: (_ path: String) throws -> Result) throws -> Result {
        let folder = try TemporaryFolder()
        return try withExtendedLifetime(folder) {
            let path = folder.path + "/file"
            try Data(bytes).write(to: URL(filePath: path))
            return try body(path)
        }
    }

    // MARK: Databases

    private static let parts = [StatusStorage.part]

    /// A backup of a store with a registration and a tombstone.
    private static let backup: [UInt8] = {
        guard let folder = try? TemporaryFolder(), let keyHash = KeyHash(bytes: [UInt8](repeating: 1, count: 64)) else { return [] }
        do {
            let store = try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: parts)
            let commands = [("a", registration), ("b", nil)].map { name, bytes in
                Registrations(store.sealer).merge(
                    RegistrationRecord(
                        key: RegistrationKey(keyHash: keyHash, installationID: InstallationID(name)), version: 1,
                        changedAt: Timestamp(rawValue: 1), registration: bytes, isNeverAsked: false))
            }
            let done = DispatchSemaphore(value: 0)
            store.submit(commands) { _ in done.signal() }
            done.wait()
            _ = try StoreBackup.write(store, to: folder.path + "/backup", storageKey: storageKey)
            try store.close()
            return Array(try Data(contentsOf: URL(filePath: folder.path + "/backup")))
        } catch {
            return []
        }
    }()

    /// Changes that those of single bytes rarely make. New ones are added at the end: corpora have their indexes.
    private static let statements = [
        "PRAGMA user_version = 7", "INSERT INTO grdb_migrations VALUES ('other 1')", "CREATE TABLE other (a)",
        "CREATE INDEX other ON registration (version)", "DELETE FROM property", "UPDATE property SET value = 'text'",
        "UPDATE property SET value = x'00'", "INSERT INTO property VALUES ('storage key rotation', x'01')",
        "INSERT INTO property VALUES ('storage key salt', x'01')", "DELETE FROM grdb_migrations", "DROP TABLE grdb_migrations",
        "CREATE VIEW grdb_migrations AS SELECT 'status 1' AS identifier", "INSERT INTO grdb_migrations VALUES ('status 99')",
        "INSERT INTO grdb_migrations VALUES ('99 status')", "DELETE FROM grdb_migrations WHERE identifier <> 'status 1'",
        "DROP TABLE property", "DROP TABLE registration", "ALTER TABLE registration ADD COLUMN other", "CREATE VIEW other AS SELECT 1",
        "CREATE INDEX other ON registration (abs(version))", "DROP INDEX registration_query_topic",
        "CREATE TRIGGER other AFTER INSERT ON registration BEGIN SELECT 1; END", "CREATE VIRTUAL TABLE other USING fts5 (a)",
        "UPDATE registration SET sealed = 'text'", "UPDATE registration SET sealed = x'00'", "UPDATE registration SET version = 'text'",
        "UPDATE registration SET version = 7", "UPDATE registration SET installation = x'07'",
        "UPDATE registration SET sealed = NULL", "CREATE TABLE other AS SELECT * FROM grdb_migrations", "VACUUM",
        "CREATE TABLE other (a -- b\n, c /* d */)", "UPDATE registration SET sealed = zeroblob(100)",
    ]

    /// Steps that change a backup. Kinds: 0 for bytes at an offset of three bytes, 1 for the number of pages that are left, 2 for the index of a
    /// statement.
    private static var database: Decoder {
        let seeds: [[(kind: UInt8, bytes: [UInt8])]] = [[(0, [0, 0, 24, 0])]] + (0..<4).map { [(2, [$0])] }
        // Made here, so that the code that makes it does not count as the decoder's.
        let original = backup
        return reading("backups", seeds.map(Steps.encode)) { bytes in
            var image = original
            for step in Steps(bytes).prefix(8) {
                switch step.kind % 3 {
                case 0:
                    let offset = step.bytes.prefix(3).reduce(0) { $0 << 8 | Int($1) }
                    for (index, byte) in zip(offset..., step.bytes.dropFirst(3)) where index < image.count { image[index] = byte }
                case 1: image = Array(image.prefix(4096 * Int(step.bytes.first ?? 0)))
                default:
                    guard let index = step.bytes.first, index < statements.count else { continue }
                    image = try changed(image, statements[Int(index)])
                }
            }
            try withFile(image) { path in
                guard try StoreInspection(of: path, storageKey: storageKey, parts: parts).isWhole else { throw Refused() }
            }
        }
    }

    private static func changed(_ image: [UInt8], _ statement: String) throws -> [UInt8] {
        try withFile(image) { path in
            let queue = try DatabaseQueue(path: path)
            let fast = "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;"
            try queue.writeWithoutTransaction { try $0.execute(sql: fast + statement) }
            try queue.close()
            return Array(try Data(contentsOf: URL(filePath: path)))
        }
    }

    // MARK: Exported registrations

    private static let sealer = Sealer(storageKey: storageKey, salt: nil)

    /// A line in each step. Kinds: bit 0 says that the line goes on in the next step, bit 1 that it is written as it is instead of encrypted, bit 2 that
    /// it is encrypted for the next index. The header is the first line.
    private static var registrations: Decoder {
        let header = Array(#"{"format":"waku-push registrations 1","file":"00"}"#.utf8)
        let record =
            #"{"record":{"keyHash":"\#(Data(repeating: 1, count: 64).base64EncodedString())","installation":"YQ==","version":1,"#
            + #""changedAt":2,"registration":"\#(Data(registration ?? []).base64EncodedString())"}}"#
        let left = #"{"leftName":{"name":"YQ==","signedAt":1,"expiresAt":2}}"#
        func seed(_ lines: [String]) -> [UInt8] {
            func steps(_ line: [UInt8], _ kind: UInt8) -> [UInt8] {
                let parts = stride(from: 0, to: line.count, by: 255).map { Array(line[$0..<min($0 + 255, line.count)]) }
                return Steps.encode(parts.enumerated().map { (kind: kind | ($0.offset < parts.count - 1 ? 1 : 0), bytes: $0.element) })
            }
            return steps(header, 2) + lines.flatMap { steps(Array($0.utf8), 0) }
        }
        return reading("files of exported registrations", [seed([record, left, #"{"end":2}"#]), seed([#"{"end":0}"#])]) { bytes in
            let key = RegistrationsFile.key(of: identity)
            var (content, line, count) = ([UInt8](), [UInt8](), -1)
            for step in Steps(bytes) {
                line += step.bytes
                guard step.kind & 1 == 0 else { continue }
                if step.kind & 2 == 0 {
                    let binding = RegistrationsFile.binding("00", max(0, count) + (step.kind & 4 == 0 ? 0 : 1))
                    line = Array(Data(AESGCM.seal(line, key: key, layout: .nonceFirst, associatedData: binding)).base64EncodedData())
                }
                content += line + [UInt8(ascii: "\n")]
                count += 1
                line = []
            }
            try withFile(content) { path in
                var reader = try RegistrationsFileReader(path, identity: identity)
                while let entry = try reader.next() {
                    // Into a store without rows.
                    guard var command = entry.merge?(sealer) else { continue }
                    var none = Steps([])
                    while case .read(let reads, let next) = command { command = try next(reads.map { rows(for: $0, &none) }) }
                    if case .apply(let changes, let outcome) = command { _ = outcome(changes.filter(\.mutation.isInsert).map { _ in 1 }) }
                }
            }
        }
    }
}
