import Core
import Foundation
import GRDB
import StorePostgreSQL
import TestSupport
import WakuCrypto

@testable import Cluster
@testable import SessionServer
@testable import StatusGoImport
@testable import StatusServer
@testable import WakuPushCommands

/// Files of operators and of other releases, and rows of the store.
extension Decoder {
    static var files: [Decoder] { configuration + databases + rows }

    private struct Refused: Error {}

    private static var configuration: [Decoder] {
        let file =
            "relay: [\"a\", 'b']\nport: 1\nlimit:\n  - a=1/s\ngorush:\n  - url: http://127.0.0.1\n    platforms: [ios]\nnotifications: {}\n"
        return [
            reading("configuration files", [Array(file.utf8), Array("identity: &a b\ndata: *a\n".utf8)]) { bytes in
                // As a file is read: UTF-8 alone.
                guard let text = String(validating: bytes, as: UTF8.self) else { throw Refused() }
                let known: Set = ["relay", "port", "limit", "identity", "data"]
                _ = try ConfigurationFile(parsing: text, path: "file", known: known, lists: ["relay", "limit"])
            },
            reading(
                "addresses of PostgreSQL",
                ["postgresql://push@db1.example:5432,db2/push?sslmode=require", "host=/tmp dbname=push"].map {
                    Array($0.utf8)
                }
            ) { _ = try PostgreSQLAddress(String(decoding: $0, as: UTF8.self)) },
            Decoder(name: "settings of other nodes", seeds: [Array("a=1\nb=2".utf8)]) { bytes in
                LeaseRow.settings(parsing: String(decoding: bytes, as: UTF8.self)) == nil ? .refused : .taken
            },
        ]
    }

    // MARK: Databases

    /// A database in the format of status-go's server, of pages of 512 bytes: plain, and encrypted by SQLCipher.
    private static let database: [UInt8] = {
        guard let folder = try? TemporaryFolder(), let queue = try? DatabaseQueue(path: folder.path + "/database") else { return [] }
        do {
            try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA page_size = 512") }
            try queue.write { database in
                try database.execute(
                    sql: """
                        CREATE TABLE push_notification_server_registrations (
                          public_key BLOB NOT NULL, installation_id VARCHAR NOT NULL, version INT NOT NULL, registration BLOB,
                          UNIQUE(public_key, installation_id) ON CONFLICT REPLACE);
                        CREATE TABLE push_notification_server_identity (private_key BLOB NOT NULL, synthetic_id INT NOT NULL DEFAULT 0);
                        CREATE TABLE push_notification_server_notifications (id BLOB NOT NULL);
                        CREATE TABLE transport_message_cache (id VARCHAR NOT NULL, timestamp INT NOT NULL);
                        INSERT INTO push_notification_server_registrations VALUES (x'01', 'a', 1, x'0203'), (x'02', 'b', 2, NULL);
                        INSERT INTO push_notification_server_identity (private_key) VALUES (zeroblob(31) || x'07');
                        INSERT INTO push_notification_server_notifications VALUES (zeroblob(32));
                        INSERT INTO transport_message_cache VALUES ('a', 1700000000000);
                        """)
            }
            try queue.close()
            return Array(try Data(contentsOf: URL(filePath: folder.path + "/database")))
        } catch {
            return []
        }
    }()

    private static func read(_ bytes: [UInt8], password: String?) throws {
        let image = try SecretBytes(count: bytes.count) { image in
            image.copyBytes(from: bytes)
            _ = try DatabaseFile.makePlain(image, "file", password: password.map { SecretBytes(Array($0.utf8)) }, iterations: 1)
        }
        // Far more than such a file needs, and little enough that no input takes long.
        let database = try StatusGoDatabase(image, path: "file", budget: ReadingBudget(operations: 200_000))
        _ = try database.identities()
        var last: Int64?
        while let page = try database.rows(after: last, limit: 10) { last = page.last }
        var before: Int64?
        while let page = try database.handledRequests(before: before, limit: 10) { before = page.last }
        _ = try database.lastHandled(at: Timestamp(rawValue: 1_800_000_000_000_000_000))
    }

    private static var databases: [Decoder] {
        [
            reading("databases of status-go", [database]) { try read($0, password: nil) },
            // Made by sqlcipher: see Corpora.
            reading("encrypted databases of status-go", []) { try read($0, password: "password") },
        ]
    }

    // MARK: Rows

    private static var rows: [Decoder] {
        let owner = ((try? PrivateKey(bytes: [UInt8](repeating: 9, count: 32))) ?? .generate()).publicKey
        let registration = Data(StatusGoVectors.recorded.messages.lazy.compactMap { $0.registration?.plaintext?.bytes }.first ?? [])
        let lines = [
            #"{"record":{"keyHash":"\#(Data(repeating: 1, count: 64).base64EncodedString())","installation":"YQ==","version":1,"#
                + #""changedAt":2,"registration":"\#(registration.base64EncodedString())","neverAsked":true}}"#,
            #"{"leftName":{"name":"YQ==","signedAt":1,"expiresAt":2}}"#,
            #"{"aheadTime":{"name":"YQ==","kind":1,"signedAt":1,"arrivedAt":2}}"#,
            #"{"v01RetiredToken":{"token":"YQ==","keyHash":"YQ==","expiresAt":1,"key":2}}"#,
        ]
        let account: [UInt8] = [1, 5] + [UInt8](repeating: 7, count: 32)
        let subscription = account + [1] + [UInt8](repeating: 2, count: 64 + 8 + 32) + [0, 2, 0, 1, 0, 2] + Array("token".utf8)
        return [
            reading("lines of exported registrations", lines.map { Array($0.utf8) }) { bytes in
                let line = try JSONDecoder().decode(RegistrationsFile.Line.self, from: Data(bytes))
                guard ProtocolLines.all.contains(where: { $0.entry(line, owner) != nil }) || line.end != nil else { throw Refused() }
            },
            reading("rows of subscriptions", [subscription]) { bytes in
                let record = try SubscriptionRecord(parsing: bytes)
                let again = try SubscriptionRecord(parsing: record.encoded())
                precondition(again.encoded() == record.encoded(), "written otherwise than it was read")
            },
            message(
                "rows of Session's notifications", [[3, 0, 1] + [UInt8](repeating: 4, count: 60)], { try SessionPayload(parsing: $0) },
                { $0.encoded() }),
        ]
    }
}
