import Delivery
import Foundation
import StatusServer
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@Suite(.timeLimit(.minutes(5)))
struct AdminTests {
    private struct OutboxRow: Decodable, Equatable {
        let id: Int64
        let keyHash, installation, expires: String
    }

    @Test func outbox() async throws {
        let fixture = try await AdminFixture()
        let hash = fixture.bob.keyHash.hex
        let rows = try await fixture.admin("outbox", "list", "--json").json([OutboxRow].self)
        #expect(rows == [OutboxRow(id: 1, keyHash: hash, installation: "installation-1", expires: "2027-01-15T08:00:00Z")])
        let text = try await fixture.admin("outbox", "list")
        #expect(text.status == 0)
        #expect(
            text.rows == [
                ["ID", "PROTOCOL", "KEY HASH", "INSTALLATION", "EXPIRES"],
                ["1", "status", hash.prefix(16) + "…", "installation-1", "2027-01-15T08:00:00Z"],
            ])
    }

    @Test func idsThatAreNotWaitingAreReported() async throws {
        struct Report: Decodable, Equatable {
            let count: Int
            let trial: Bool?
        }
        let fixture = try await AdminFixture()
        let trial = try await fixture.admin("outbox", "drop", "1", "17", "--json")
        #expect(try trial.json() == Report(count: 1, trial: true))
        #expect(trial.status == 0 && trial.failure?.hasPrefix("warning: 1 of 2 ids are not waiting") == true, "\(trial.errors)")
        #expect(trial.errors.contains("1 of 2 ids are not waiting: see waku-push admin outbox list (17)"), "\(trial.errors)")
        let unknown = try await fixture.admin("outbox", "drop", "17", "--yes")
        #expect(unknown.status == 65 && unknown.failure?.hasPrefix("this id is not waiting") == true, "\(unknown.errors)")
        let dropped = try await fixture.admin("outbox", "drop", "1", "--yes", "--json")
        #expect(try dropped.json() == Report(count: 1, trial: nil))
        #expect(dropped.status == 0 && dropped.errors.isEmpty)
    }

    @Test func aTrialRemovalIsReportedAsTrial() async throws {
        struct Row: Decodable {
            let trial: Bool?
        }
        let fixture = try await AdminFixture()
        let remove = ["registrations", "remove", fixture.carol.keyHash.hex, "--json"]
        func rows(_ more: String...) async throws -> [Row] {
            try await run(["admin"] + remove + more + ["--data", fixture.data]).json()
        }
        #expect(try await rows().map(\.trial) == [true])
        #expect(try await rows("--yes").map(\.trial) == [nil])
    }

    private struct TracedRow: Decodable, Equatable {
        let state, `protocol`: String
        let keyHash, installation: String?
        let outboxID: Int64?
        let expires: String?
        let registeredVersion: UInt64?
    }

    @Test func trace() async throws {
        let fixture = try await AdminFixture()
        let id = DeliveryID(messageID: [1], key: fixture.bob.key).notificationID
        let expected = TracedRow(
            state: "waiting", protocol: "status", keyHash: fixture.bob.keyHash.hex, installation: "installation-1", outboxID: 1,
            expires: "2027-01-15T08:00:00Z", registeredVersion: 1)
        #expect(try await fixture.admin("trace", id, "--json").json([TracedRow].self) == [expected])
        let text = try await fixture.admin("trace", id)
        #expect(text.output.contains("first post    none yet\n"))

        let privateID = NotificationIDCipher(identity: fixture.server.key).postedID(of: id)
        #expect(try await fixture.admin("trace", privateID, "--json", identified: true).json([TracedRow].self) == [expected])
        let unidentified = try await fixture.admin("trace", privateID)
        #expect(unidentified.status == 64 && unidentified.failure?.hasPrefix("--identity is missing: ") == true)
        #expect(try await fixture.admin("trace", "abc").status == 64)
        let unknown = try await fixture.admin("trace", String(repeating: "0", count: 32))
        #expect(unknown.status == 65 && unknown.failure?.hasPrefix("nothing is stored about this notification") == true)
    }

    private struct TopicRow: Decodable, Hashable {
        let contentTopic, purpose, keyHash: String
    }

    @Test func topics() async throws {
        let fixture = try await AdminFixture()
        let queries = [fixture.bob, fixture.carol].flatMap { client in
            let topics = QueryTopics(of: client.keyHash)
            return [
                TopicRow(contentTopic: ContentTopic(topics.deployed).rawValue, purpose: "query", keyHash: client.keyHash.hex),
                TopicRow(
                    contentTopic: ContentTopic(topics.published).rawValue, purpose: "query, published form", keyHash: client.keyHash.hex),
            ]
        }
        #expect(try await fixture.admin("topics", "--json").json() == queries)
        #expect(try await fixture.admin("topics", "--json", "--limit", "1").json() == Array(queries.prefix(2)))

        let key = fixture.server.key.publicKey
        let own = [("personal", StatusTopics.personal(key)), ("partitioned", StatusTopics.partitioned(key))].map { purpose, topic in
            TopicRow(contentTopic: ContentTopic(TopicTag(of: topic)).rawValue, purpose: purpose, keyHash: KeyHash(of: key).hex)
        }
        #expect(try await fixture.admin("topics", "--json", identified: true).json() == own + queries)

        // Those of each identity, as serve listens on them.
        let other = try KeyFile(in: fixture.folder, "other.key")
        let (both, v01) = ("\(fixture.server.path), \(other.path)", ["WAKU_PUSH_STATUS_V0_1": "true"])
        let topics = ["admin", "topics", "--json", "--limit", "1", "--data", fixture.data]
        for (options, environment) in [
            (["--identity", fixture.server.path, "--identity", other.path], v01), ([], v01.merging(["WAKU_PUSH_IDENTITY": both]) { $1 }),
        ] {
            let rows = try await run(topics + options, environment: environment).json([TopicRow].self)
            let expected = [key, other.key.publicKey].flatMap { key in
                [StatusTopics.personal(key), StatusTopics.partitioned(key), V01.serverTopic(key)].map {
                    [ContentTopic(TopicTag(of: $0)).rawValue, KeyHash(of: key).hex]
                }
            }
            #expect(rows.dropLast(2).map { [$0.contentTopic, $0.keyHash] } == expected)
            #expect(rows.filter { $0.purpose == "version 0.1" }.count == 2)
        }
        let text = try await fixture.admin("topics", identified: true)
        #expect(text.rows.first == ["CONTENT TOPIC", "PURPOSE", "KEY HASH"])
        let rows = (own + queries).map { [$0.contentTopic, $0.purpose, "\($0.keyHash.prefix(16))…"] }
        #expect(Array(text.rows.dropFirst()) == rows)
    }

    /// Ids chosen by clients can't control a terminal.
    @Test func controlCharactersInIdsAreEscaped() async throws {
        let fixture = try await AdminFixture(secondPhone: "\u{1B}[31mred\r\n")
        let hash = fixture.bob.keyHash.hex
        for arguments in [["list"], ["show", hash], ["remove", hash]] {
            let ended = try await run(["admin", "registrations"] + arguments + ["--data", fixture.data])
            #expect(ended.status == 0)
            #expect(ended.output.contains(#"\u{1b}[31mred\u{d}\u{a}"#))
            #expect(!ended.output.contains { $0 == "\u{1B}" || $0 == "\r" || $0 == "\r\n" })
        }
    }

    @Test(arguments: [
        ["registrations", "list"], ["registrations", "show", "00"], ["registrations", "stats"], ["registrations", "remove", "00"],
        ["outbox", "list"], ["topics"], ["trace", "00000000000000000000000000000000"],
    ])
    func withoutADatabase(command: [String]) async throws {
        let folder = try TemporaryFolder()
        let ended = try await run(["admin"] + command + ["--data", folder.path])
        #expect(ended.status == 65)
        #expect(ended.failure?.hasPrefix("there is no database at \(folder.path)/") == true)
        #expect(ended.output == "")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
}
