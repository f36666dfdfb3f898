import Foundation
import Storage
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

@Suite("A PostgreSQL server that fails", .timeLimit(.minutes(5)))
struct FaultTests {
    private static let commitTag = Array("COMMIT\0".utf8)

    /// A store behind a proxy, with a counter of 0.
    private func behindProxy() async throws -> (StoreFixture, PostgreSQLProxy, PostgreSQLStore) {
        let fixture = try StoreFixture()
        let setUp = try fixture.open()
        try await setUp.commit(Counters.add(1))
        try setUp.close()
        let proxy = try PostgreSQLProxy(fixture.server)
        return (fixture, proxy, try fixture.open(host: proxy.path))
    }

    /// Cuts the connection at the first occurrence of these bytes in a direction.
    private func cut(_ text: [UInt8], _ wanted: PostgreSQLProxy.Direction, in proxy: PostgreSQLProxy) -> Mutex<Int>.Box {
        let count = Mutex<Int>.Box()
        proxy.inspect { direction, bytes in
            guard direction == wanted, bytes.indices.contains(where: { bytes[$0...].starts(with: text) }) else { return .pass }
            return count.increment() == 1 ? .cut : .pass
        }
        return count
    }

    @Test("A commit whose reply is lost is found to be committed, and is not repeated", arguments: [false, true])
    func lostReply(warns: Bool) async throws {
        let (fixture, proxy, store) = try await behindProxy()
        if warns {
            // As the server warns when transaction ids run out, with each transaction that needs one.
            let statements = [
                "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE WARNING ''10000000 left''; RETURN NULL; END'",
                "CREATE TRIGGER warn AFTER UPDATE ON store_writer FOR EACH ROW EXECUTE FUNCTION warn()",
            ]
            _ = try fixture.connection().run(statements.map { Statement($0, isPrepared: false) })
        }
        let passages = cut(Self.commitTag, .toClient, in: proxy)
        #expect(try await store.commit(Counters.increment(1)) == 0)
        // The lost COMMIT, and that of the look-up.
        #expect(passages.value == 2)
        #expect(try store.read(Counters.value(1)) == 1)
        #expect(store.failure == nil)
    }

    @Test("A commit that did not reach the server is found not to be committed, and is repeated")
    func lostCommit() async throws {
        let (_, proxy, store) = try await behindProxy()
        let passages = cut(Self.commitTag, .toServer, in: proxy)
        #expect(try await store.commit(Counters.increment(1)) == 0)
        // The lost COMMIT, and that of the look-up on a new connection, which prepares it for the repetition too.
        #expect(passages.value == 2)
        #expect(try store.read(Counters.value(1)) == 1)
    }

    @Test("An idle connection that was lost causes no failure")
    func lostIdle() async throws {
        let (_, proxy, store) = try await behindProxy()
        for count in 0..<3 as Range<Int64> {
            #expect(try await store.commit(Counters.increment(1)) == count)
            #expect(try store.read(Counters.value(1)) == count + 1)
            proxy.cutAll()
        }
        #expect(try store.read(Counters.value(1)) == 3)
        #expect(store.failure == nil)
    }

    @Test("A probe on a lost connection reports whether the server can be reached")
    func lostBeforeProbe() async throws {
        let (_, proxy, store) = try await behindProxy()
        try await store.commit(Counters.increment(1))
        let failures = Mutex<Int>.Box()
        proxy.inspect { _, _ in failures.increment() == 1 ? .cut : .pass }
        await store.maintain()
        #expect(failures.value > 1)
        #expect(store.failure == nil)
    }

    @Test("A table that the role may not use is reported until it may, although other commits succeed")
    func forbiddenTable() async throws {
        let fixture = try StoreFixture()
        let role = Database.randomSchema()
        let connection = try fixture.connection()
        func run(_ sql: String) throws { _ = try connection.run(Statement(sql, isPrepared: false)) }
        try run("CREATE ROLE \(role) LOGIN")
        try run("GRANT ALL ON SCHEMA \(fixture.schema) TO \(role)")
        let address = try PostgreSQLAddress(
            "host=\(fixture.server.folder) dbname=postgres user=\(role) options=-csearch_path=\(fixture.schema)")
        let store = try PostgreSQLStore(address, storageKey: fixture.storageKey, parts: [Counters.part], access: .exclusive)
        await store.maintain()
        #expect(store.failure == nil)
        for change in ["OWNER TO postgres", "RENAME TO other"] {
            try run("ALTER TABLE counter \(change)")
            await store.maintain()
            try await store.commit(StoreCommand.change([Properties.set("other", to: [1])]))
            #expect(store.failure?.hasPrefix("table counter of PostgreSQL") == true)
            #expect(store.failure?.contains("is missing in schema \(fixture.schema), or this role may not use it") == true)
            // Also in the same transaction.
            let results = await store.commitEach([Counters.add(1), StoreCommand.change([Properties.set("other", to: [2])])])
            #expect(results.map { (try? $0.get()) != nil } == [false, true])
            let reads = try store.readEach([Counters.value(1), Properties.property("other").map { $0.map { Int64($0.count) } }])
            #expect(reads.map { (try? $0.get()) != nil } == [false, true])
            try run(change.hasPrefix("OWNER") ? "ALTER TABLE counter OWNER TO \(role)" : "ALTER TABLE other RENAME TO counter")
            await store.maintain()
            #expect(store.failure == nil)
        }
        try run("ALTER TABLE store_writer RENAME TO other")
        await store.maintain()
        #expect(store.failure?.contains("is missing") == true, "\(store.failure ?? "")")
        try run("ALTER TABLE other RENAME TO store_writer")
        await store.maintain()
        #expect(store.failure == nil)
        try store.close()
    }

    @Test("Connections lost at any byte lose and repeat no change", arguments: [1, 2, 3] as [UInt64])
    func lostAnywhere(seed: UInt64) async throws {
        let (fixture, proxy, store) = try await behindProxy()
        let generator = Mutex(SeededGenerator(seed: seed))
        proxy.inspect { _, _ in generator.withLock { Int.random(in: 0..<40, using: &$0) == 0 } ? .cut : .pass }
        var kept: Int64 = 0
        for _ in 0..<60 {
            let results = await store.commitEach((0..<3).map { _ in Counters.increment(1) })
            kept += Int64(results.count { (try? $0.get()) != nil })
        }
        proxy.inspect { _, _ in .pass }
        #expect(kept > 0)
        #expect(try fixture.open().read(Counters.value(1)) == kept)
    }

    @Test(
        "A server that stops responding is given up, though the connection is open",
        arguments: [PostgreSQLProxy.Direction.toServer, .toClient])
    func silence(direction: PostgreSQLProxy.Direction) async throws {
        let fixture = try StoreFixture()
        let setUp = try fixture.open()
        try await setUp.commit(Counters.add(1))
        try setUp.close()
        let proxy = try PostgreSQLProxy(fixture.server)
        let store = try fixture.open(host: proxy.path, silenceLimit: .milliseconds(300))
        let passages = Mutex<Int>.Box()
        proxy.inspect { passing, bytes in
            guard passing == direction, bytes.indices.contains(where: { bytes[$0...].starts(with: Self.commitTag) }) else { return .pass }
            return passages.increment() == 1 ? .hold : .pass
        }
        #expect(try await store.commit(Counters.increment(1)) == 0)
        #expect(try store.read(Counters.value(1)) == 1)
        // A read reports the failure.
        proxy.inspect { _, _ in .hold }
        #expect(throws: StoreError.self) { try store.read(Counters.value(1)) }
        proxy.inspect { _, _ in .pass }
        proxy.cutAll()
        try await eventually { (try? store.read(Counters.value(1))) == 1 }
    }

    @Test("A read goes on for a while if the server answers another connection", arguments: [(600, true), (0, false)])
    func longestSilence(seconds: Int, goesOn: Bool) throws {
        let connection = try StoreFixture().connection()
        (connection.silenceLimit, connection.longestSilence) = (.milliseconds(200), .seconds(seconds))
        let slow = Statement("SELECT 1::bigint FROM pg_sleep(0.7)")
        if goesOn {
            #expect(try connection.run(slow).rows.count == 1)
        } else {
            let error = #expect(throws: PostgreSQLError.self) { try connection.run(slow) }
            #expect(connection.isLost)
            let explained = try StoreError(explaining: #require(error), at: connection.address)
            #expect(explained.message.contains("did not answer in time: look at the server, its locks and its standby"))
        }
    }

    @Test("A table that another session holds keeps its size, and the store works")
    func sizeOfAHeldTable() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let size = store.byteCount
        let other = try fixture.connection()
        for sql in ["CREATE TABLE held (a bigint)", "BEGIN", "LOCK TABLE held IN ACCESS EXCLUSIVE MODE"] {
            _ = try other.run(Statement(sql, isPrepared: false))
        }
        await store.maintain()
        #expect(store.failure == nil)
        #expect(store.byteCount == size && size > 0)
    }

    @Test("A statement that the server ended for its time limit is not answered in time")
    func statementTimeout() throws {
        let connection = try StoreFixture().connection()
        _ = try connection.run(Statement("SET statement_timeout = 1", isPrepared: false))
        let error = #expect(throws: PostgreSQLError.self) { try connection.run(Statement("SELECT pg_sleep(10)", isPrepared: false)) }
        let explained = try StoreError(explaining: #require(error), at: connection.address)
        #expect(explained.message.hasSuffix("did not answer in time: look at the server, its locks and its standby (SQLSTATE 57014)"))
    }

    @Test(
        "A command does not wait for long for a table that another session holds, and says why",
        arguments: ["counter", "store_migration", "property"])
    func commandAtAHeldTable(table: String) async throws {
        let fixture = try StoreFixture()
        try await fixture.open().commit(Counters.add(1))
        let other = try fixture.connection()
        for sql in ["BEGIN", "LOCK TABLE \(table) IN ACCESS EXCLUSIVE MODE"] { _ = try other.run(Statement(sql, isPrepared: false)) }
        var impatient = try fixture.address()
        impatient.silenceLimit = .milliseconds(1500)
        let address = impatient
        func read() throws -> Int64? {
            try PostgreSQLStore(existing: address, storageKey: fixture.storageKey, parts: [Counters.part]).read(Counters.value(1))
        }
        let error = #expect(throws: StoreError.self) { try read() }
        #expect(error?.message.hasPrefix("another session holds a lock in PostgreSQL") == true, "\(error?.message ?? "")")
        other.rollBack()
        #expect(try read() == 0)
    }

    @Test("A page that can't be read fails only what needs it")
    func unreadablePage() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open(access: .exclusive)
        let connection = try fixture.connection()
        // As the server reports an I/O error: errcode_for_file_access.
        let statements = [
            "CREATE FUNCTION unreadable() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''58030''; END'",
            "CREATE TRIGGER unreadable BEFORE INSERT ON counter FOR EACH ROW EXECUTE FUNCTION unreadable()",
        ]
        for sql in statements { _ = try connection.run(Statement(sql, isPrepared: false)) }
        let results = await store.commitEach([Counters.add(1), StoreCommand.change([Properties.set("other", to: [2])])])
        #expect(results.map { (try? $0.get()) != nil } == [false, true])
        let error = #expect(throws: StoreError.self) { try results[0].get() }
        #expect(error?.code == .damaged)
    }

    @Test("A value that an index has no room for fails only its own command")
    func oversizedValue() async throws {
        let name = Column("name", .bytes)
        let table = Table("named", columns: [name], unique: [name])
        let insert = Mutation(table, .insert([name]))
        let find = Query(table, [name], where: [.equal(name)])
        let store = try PostgreSQLStore(
            StoreFixture().address(), storageKey: .random(), parts: [StorePart("named", tables: [table])], access: .exclusive)
        // Random, so that it is not compressed: a B-tree's entry has 2704 bytes.
        let names = [[1], randomBytes(20_000), [2]]
        let results = await store.commitEach(names.map { StoreCommand.change([insert.change([.bytes($0)])]) })
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
        #expect(store.failure == nil)
        for name in [names[0], names[2]] { #expect(try store.read(.find(find(.bytes(name))) { .done($0.count) }) == 1) }
        try store.close()
    }

    @Test("What a failed statement's exchange prepared is not prepared again")
    func preparedBeforeAFailure() throws {
        let connection = try StoreFixture().connection()
        let good = Statement("SELECT 1::bigint")
        for _ in 0..<3 {
            #expect(throws: PostgreSQLError.self) { try connection.run([good, Statement("SELECT 1 / 0")]) }
        }
        #expect(try connection.run(good).rows.count == 1)
        let count = Statement("SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT 1::bigint'", isPrepared: false)
        #expect(try connection.run(count).rows.first?.integer(0) == 1)
    }

    @Test("A commit with an unknown outcome is not waited for when the process ends")
    func stopWaiting() async throws {
        let server = try PostgreSQLServer()
        let fixture = try StoreFixture(server)
        let setUp = try fixture.open()
        try await setUp.commit(Counters.add(1))
        try setUp.close()
        let proxy = try PostgreSQLProxy(server)
        let store = try fixture.open(host: proxy.path)
        let passages = Mutex<Int>.Box()
        proxy.inspect { passing, bytes in
            // Cuts the connection at the reply, and every later connection.
            let isReply = passing == .toClient && bytes.indices.contains { bytes[$0...].starts(with: Self.commitTag) }
            return isReply && passages.increment() == 1 || passages.value > 0 ? .cut : .pass
        }
        async let results = store.commitEach([Counters.increment(1)])
        try await eventually { store.failure != nil }
        store.stopWaiting()
        let result = await results[0]
        let error = #expect(throws: StoreError.self) { try result.get() }
        #expect(error?.message.hasPrefix("whether the last changes were kept is not known") == true)
        proxy.inspect { _, _ in .pass }
        // The commit took place.
        #expect(try fixture.open().read(Counters.value(1)) == 1)
    }

    @Test("A stopped server fails commands at once; a started one serves them again")
    func restart() async throws {
        let server = try PostgreSQLServer()
        let fixture = try StoreFixture(server)
        let store = try fixture.open(access: .exclusive)
        try await store.commit(Counters.add(1))
        try server.stop()
        for _ in 0..<3 {
            let error = await #expect(throws: StoreError.self) { try await store.commit(Counters.increment(1)) }
            #expect(error?.code == .unavailable)
        }
        #expect(store.failure?.contains("can't be reached") == true)
        #expect(throws: StoreError.self) { try store.read(Counters.value(1)) }
        await store.maintain()
        #expect(store.failure != nil)
        try server.start()
        try await eventually {
            await store.maintain()
            return store.failure == nil
        }
        #expect(try await store.commit(Counters.increment(1)) == 0)
        #expect(try store.read(Counters.value(1)) == 1)
    }

    @Test("A batch is repeated after a deadlock")
    func deadlock() async throws {
        let fixture = try StoreFixture()
        let store = try PostgreSQLStore(fixture.address("-cdeadlock_timeout=5s"), storageKey: fixture.storageKey, parts: [Counters.part])
        for number in [1, 2] as [Int64] { try await store.commit(Counters.add(number)) }
        let session = store.queue.runAndWait { $0.session }
        let other = try fixture.connection()
        func run(_ sql: String) throws { _ = try other.run(Statement(sql, isPrepared: false)) }
        // The server aborts the transaction that waits for a second and finds the deadlock: the store's.
        try run("SET deadlock_timeout = '100s'")
        try run("BEGIN")
        try run("UPDATE counter SET count = 10 WHERE number = 2")
        let commands = [1, 2].map { StoreCommand.change([Counters.setOwner(.integer(5), .integer($0))]) }
        async let results = store.commitEach(commands)
        let waiting = Statement(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = '\(session)'")
        let observer = try fixture.connection()
        try await eventually { try observer.run(waiting).rows == [Row([.integer(1)])] }
        try run("UPDATE counter SET count = 10 WHERE number = 1")
        try run("COMMIT")
        for result in await results { try result.get() }
        #expect(
            try store.read(Counters.all()) == [
                [.integer(1), .integer(10), .integer(5)], [.integer(2), .integer(10), .integer(5)],
            ])
    }

    @Test("Ordered inserts are executed in key order, before all other changes")
    func orderedInserts() async throws {
        let fixture = try StoreFixture()
        let key = Column("key", .bytes)
        let table = Table("taken", columns: [key], unique: [key], ordersInserts: true)
        let insert = Mutation(table, .insert([key]))
        let store = try PostgreSQLStore(
            fixture.address(), storageKey: fixture.storageKey, parts: [Counters.part, StorePart("taken", tables: [table])])
        let commands = [3, 1, 2].map { (number: Int64) -> StoreCommand<[Int64]> in
            let changes: [Change] = [insert(.bytes([UInt8(number), 7])), Counters.insert(.integer(number), .integer(0), .null)]
            return .apply(changes) { $0 }
        }
        let ids = try await store.commitEach(commands).map { try $0.get() }
        let rows = try store.read(.find(Query(table, [.id, key], order: [.ascending(key)])()) { .done($0) })
        let expected: [[Value]] = [1, 2, 0].enumerated().map { place, command in
            [.integer(ids[command][0]), .bytes([UInt8(place + 1), 7])]
        }
        #expect(rows.map(\.values) == expected)
        #expect(ids[1][0] < ids[2][0] && ids[2][0] < ids[0][0])
        // Other inserts keep their order.
        #expect(ids[0][1] < ids[1][1] && ids[1][1] < ids[2][1])
    }

    @Test(
        "The outcome of a commit whose wait for a standby was cancelled is looked up, also if the role asks for errors only",
        arguments: ["notice", "error"])
    func cancelledReplication(messages: String) async throws {
        let server = try PostgreSQLServer()
        let fixture = try StoreFixture(server)
        let store = try fixture.open("-cclient_min_messages=\(messages)")
        try await store.commit(Counters.add(1))
        let other = try PostgreSQLConnection(to: fixture.address("-csynchronous_commit=local"))
        func run(_ sql: String) throws -> [Row] { try other.run(Statement(sql, isPrepared: false)).rows }
        // No standby exists.
        _ = try run("ALTER SYSTEM SET synchronous_standby_names = '*'")
        _ = try run("SELECT pg_reload_conf()")
        let waiting = "SELECT pid::bigint FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        try await eventually { try run("SELECT current_setting('synchronous_standby_names')") == [Row([.text("*")])] }
        async let count = store.commit(Counters.increment(1))
        try await eventually { try !run(waiting).isEmpty }
        // The look-up waits too. One whose wait was cancelled proves nothing, and is repeated on another connection.
        for _ in 0..<2 {
            let session = try run(waiting)
            _ = try run("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            try await eventually {
                let next = try run(waiting)
                return !next.isEmpty && next != session
            }
        }
        _ = try run("ALTER SYSTEM RESET synchronous_standby_names")
        _ = try run("SELECT pg_reload_conf()")
        #expect(try await count == 0)
        #expect(try store.read(Counters.value(1)) == 1)
    }

    @Test("A database that was restored meanwhile is not written to")
    func restored() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open(access: .exclusive)
        try await store.commit(Counters.add(1))
        _ = try fixture.connection().run(Statement("UPDATE store_writer SET batch = '\\x00'"))
        let error = await #expect(throws: StoreError.self) { try await store.commit(Counters.increment(1)) }
        #expect(error?.code == .locked)
        await store.maintain()
        #expect(store.failure?.contains("taken over") == true)
        #expect(try store.read(Counters.value(1)) == 0)
    }

    @Test("A damaged row fails the command that reads it, is reported, and is checked again")
    func damagedRow() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let sealed = store.sealer.seal([1, 2, 3], in: Counters.table, boundTo: [.integer(1)])
        try await store.commit(.change([Counters.insertSealed(.integer(1), .integer(0), sealed)]))
        #expect(try store.inspect(limit: nil).rows == ["counters": StoreInspection.Rows(count: 1)])
        _ = try fixture.connection().run(Statement("UPDATE counter SET number = 2"))
        let read = StoreCommand<[UInt8]>.find(Counters.sealedRows()) { [sealer = store.sealer] rows in
            .done(try sealer.open(rows[0].bytes(1), in: Counters.table, boundTo: [rows[0].values[0]]))
        }
        let error = #expect(throws: StoreError.self) { try store.read(read) }
        #expect(error?.code == .damaged)
        #expect(store.failure != nil)
        await store.check()
        #expect(store.failure != nil)
        #expect(try store.inspect(limit: nil).unreadableCount == 1)
        _ = try fixture.connection().run(Statement("UPDATE counter SET number = 1"))
        // A stop does not wait for the rest, of which nothing is known then.
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await store.check()
        }
        await cancelled.value
        #expect(store.failure != nil)
        await store.check()
        #expect(store.failure == nil)
    }
}

extension Mutex where Value == Int {
    /// A count shared by several threads.
    final class Box: Sendable {
        private let count = Mutex(0)

        var value: Int { count.withLock { $0 } }

        func increment() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }
}
