import Foundation
import GRDB
import Core
import StatusProtocol
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import Delivery
@testable import StatusServer
@testable import StoreSQLite

/// SQLite chooses indexes from the text of a statement: statements of each message must not scan all rows.
@Suite("Statements of each message use an index")
struct QueryPlanTests {
    private let store: SQLiteStore
    private let folder: TemporaryFolder
    private let key = RegistrationKey(
        keyHash: KeyHash(of: PrivateKey.generate().publicKey), installationID: InstallationID("phone"))
    private let delivery = DeliveryID(hashing: [1])
    private let device = DeviceID(StatusStorage.protocolNumber, row: 1)

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(folder: folder.path, storageKey: .random(), parts: [DeliveryStorage.part, StatusStorage.part])
    }

    /// The steps of SQLite's query plan.
    private func plan(_ sql: String, _ arguments: [Value]) throws -> [String] {
        let values = arguments.map { value -> (any DatabaseValueConvertible)? in
            switch value {
            case .null: nil
            case .integer(let integer): integer
            case .text(let text): text
            case .bytes(let bytes): Data(bytes)
            }
        }
        return try store.pool.read { db in
            let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
            statement.setUncheckedArguments(StatementArguments(values))
            return try GRDB.Row.fetchAll(statement).map { $0["detail"] as String }
        }
    }

    /// The instructions of SQLite's program.
    private func program(_ read: Read) throws -> [String] {
        try store.pool.read { db in
            try GRDB.Row.fetchAll(db, sql: "EXPLAIN " + read.sql, arguments: [-1, 0]).map { $0["opcode"] as String }
        }
    }

    /// Whether a step scans all rows of a table.
    private func isScan(_ step: String) -> Bool {
        step.hasPrefix("SCAN") && !step.contains(" INDEX ") && !step.contains("json_each")
    }

    private func expectIndexes(_ reads: [Read], sourceLocation: SourceLocation = #_sourceLocation) throws {
        for read in reads {
            let steps = try plan(read.sql, read.arguments)
            #expect(!steps.isEmpty && !steps.contains(where: isScan), "\(read.sql): \(steps)", sourceLocation: sourceLocation)
        }
    }

    private func expectIndexes<Outcome>(_ command: StoreCommand<Outcome>, sourceLocation: SourceLocation = #_sourceLocation) throws {
        guard case .read(let reads, _) = command else { Issue.record("no reads", sourceLocation: sourceLocation); return }
        try expectIndexes(reads, sourceLocation: sourceLocation)
    }

    @Test func readsOfRegistrations() throws {
        let (now, hash) = (Timestamp(rawValue: 1), key.keyHash)
        let registrations = Registrations(store.sealer)
        try expectIndexes(Registrations.head(of: key))
        try expectIndexes(registrations.state(of: key))
        try expectIndexes(registrations.registrations(of: [hash]))
        try expectIndexes(Registrations.installationCount(of: hash))
        try expectIndexes(Registrations.countedInstallations(of: hash, limit: 1_000))
        try expectIndexes(Registrations.countedRegistrations())
        try expectIndexes(Registrations.unfounded.forget(at: now, limit: 10))
        try expectIndexes(Registrations.displaceable())
        try expectIndexes(Registrations.forgetNeverAsked(limit: 10))
        try expectIndexes(Registrations.expire(key, unchangedSince: now, at: now))
        try expectIndexes(Registrations.keyHashes(prefix: "ab", limit: 2))
        try expectIndexes(TopicKeyStorage.queryTopics(withTag: TopicTag(rawValue: 7)))
        try expectIndexes(TopicKeyStorage(store.sealer).key(of: "topic"))
        try expectIndexes(TopicKeyStorage.registrantsWithoutKey(before: nil, limit: 10))
        try expectIndexes(AnswerStorage.answer(to: [1]))
    }

    @Test("The tombstones that limits count are counted in their index, without a look-up of each row")
    func unfoundedTombstones() throws {
        guard case .read(let reads, _) = Registrations.countedRegistrations() else { Issue.record("no reads"); return }
        for read in reads {
            let program = try program(read)
            #expect(program.contains("AggStep") && !program.contains("Column"), "\(read.sql): \(program)")
        }
    }

    @Test("Figures of all registrations need no row of them")
    func figures() throws {
        var command = Registrations.figures()
        var steps: [String] = []
        while case .read(let reads, let next) = command {
            for read in reads { steps += try plan(read.sql, read.arguments) }
            command = try next(reads.map { _ in [] })
        }
        #expect(steps.filter { $0.hasPrefix("SCAN registration") } == ["SCAN registration USING COVERING INDEX registration_platform"])
    }

    @Test("Registrations of a registrant are found without those of others whose topics have the same tag")
    func registrationsOfRegistrant() throws {
        let commands: [StoreCommand<Int>] = [
            Registrations.installationCount(of: key.keyHash), Registrations.countedInstallations(of: key.keyHash, limit: 1_000),
            Registrations(store.sealer).registrations(of: [key.keyHash]).map(\.count),
            // On the writer, once for each derived key.
            TopicKeyStorage(store.sealer).keep(.random(), of: "topic", ifRegistered: key.keyHash).map { _ in 0 },
        ]
        for command in commands {
            guard case .read(let reads, _) = command else { Issue.record("no reads"); continue }
            let steps = try plan(reads[0].sql, reads[0].arguments)
            #expect(steps.count == 1 && steps[0].contains("registration_registrant (query_topic=? AND key_hash=?)"), "\(steps)")
        }
    }

    @Test("The oldest registrants of a topic are found without sorting the rows of all that have it")
    func registrantsOfTopic() throws {
        guard case .read(let reads, _) = TopicKeyStorage.queryTopics(withTag: TopicTag(rawValue: 7)) else {
            Issue.record("no reads")
            return
        }
        let steps = try reads.flatMap { try plan($0.sql, $0.arguments) }
        #expect(
            steps == [
                "SEARCH registration USING INDEX registration_query_topic (query_topic=?)",
                "SEARCH registration USING INDEX registration_published_query_topic (published_query_topic=?)",
            ])
    }

    @Test func readsOfDeliveries() throws {
        try expectIndexes(DeliveryStorage.states(of: [delivery]))
        try expectIndexes(DeliveryStorage.waiting(delivery))
        try expectIndexes(DeliveryStorage.stored([1, 2]))
        try expectIndexes(DeliveryStorage.posted(under: [1, 2]))
        try expectIndexes(DeliveryStorage.traces(of: [1, 2]))
        try expectIndexes(DeliveryStorage.haveFailures([delivery]))
        try expectIndexes(DeliveryStorage.doubt(of: device))
    }

    @Test func changes() throws {
        let posted = PostedNotification(delivery: delivery, device: device, version: 1)
        let changes =
            DeliveryStorage.forget(device) + DeliveryStorage.accept(posted, postedAs: nil, at: Timestamp(rawValue: 1))
            + [TopicKeyStorage.forget(key.keyHash)]
        for change in changes where !change.sql.hasPrefix("INSERT") {
            let steps = try plan(change.sql, change.arguments)
            #expect(!steps.isEmpty && !steps.contains(where: isScan), "\(change.sql): \(steps)")
        }
    }

    @Test("A read of one id is a look-up by the primary key, without a table for the list")
    func oneID() throws {
        let query = StatusDeliverySource(store.sealer).devices
        let steps = try plan(query(ids: [1]).sql, [.integer(1)])
        #expect(steps == ["SEARCH registration USING INTEGER PRIMARY KEY (rowid=?)"])
        #expect(try plan(query(ids: [1, 2]).sql, [.text("[1,2]")]).contains { $0.contains("LIST SUBQUERY") })
    }
}
