import Foundation
import Storage
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

@Suite("Failover of PostgreSQL", .timeLimit(.minutes(5)))
struct FailoverTests {
    @Test("A promoted synchronous standby has every acknowledged change once; the store reconnects to it")
    func promotion() async throws {
        let primary = try PostgreSQLServer()
        let standby = try PostgreSQLServer(standbyOf: primary)
        try await primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        let observer = try PostgreSQLConnection(to: PostgreSQLAddress(primary.address))
        let synchronous = Statement("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
        try await eventually { try observer.run(synchronous).rows == [Row([.integer(1)])] }

        let address = try PostgreSQLAddress("host=\(primary.folder),\(standby.folder) dbname=postgres user=postgres")
        let store = try PostgreSQLStore(address, storageKey: .random(), parts: [Counters.part], access: .exclusive)
        try await store.commit(Counters.add(1))
        let (acknowledged, isDone) = (Mutex<Int>.Box(), Mutex<Int>.Box())
        let load = Task {
            while isDone.value == 0 {
                for result in await store.commitEach((0..<5).map { _ in Counters.increment(1) }) {
                    if (try? result.get()) != nil { _ = acknowledged.increment() }
                }
                await store.maintain()
            }
        }
        try await eventually { acknowledged.value > 20 }
        try primary.kill()
        try standby.promote()
        let before = acknowledged.value
        try await eventually { acknowledged.value > before + 50 }
        _ = isDone.increment()
        await load.value
        #expect(try store.read(Counters.value(1)) == Int64(acknowledged.value))
        #expect(store.failure == nil)
        try store.close()
    }

    @Test(
        "A former primary that goes on answering is left once a connection, or the watch, has found the promoted standby",
        arguments: [false, true])
    func splitBrain(isWatched: Bool) async throws {
        let primary = try PostgreSQLServer()
        let standby = try PostgreSQLServer(standbyOf: primary)
        try await primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        let address = try PostgreSQLAddress("host=\(primary.folder),\(standby.folder) dbname=postgres user=postgres")
        let store = try PostgreSQLStore(address, storageKey: .random(), parts: [Counters.part], access: .shared)
        try await store.commit(Counters.add(1))
        #expect(try store.read(Counters.value(1)) == 0)
        let former = try PostgreSQLConnection.open(address, name: "test")
        try standby.promote()
        // As with another standby, which still follows: the former primary acknowledges commits.
        try await primary.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        #expect(!former.isLost)
        if isWatched {
            let watch = try #require(store.promotions)
            watch.look()
        } else {
            _ = try PostgreSQLConnection.open(address, name: "test") { made throws(StoreError) in
                if made.timeline == 1 { throw StoreError(code: .unavailable, message: "suspended at that moment") }
            }
        }
        #expect(former.isLost)
        try await store.commit(Counters.increment(1))
        #expect(try store.read(Counters.value(1)) == 1)
        let counts = try [primary, standby].map { server in
            let connection = try PostgreSQLConnection(to: PostgreSQLAddress(server.address))
            return try connection.run(Statement("SELECT count FROM \(Counters.table.name)")).rows
        }
        #expect(counts == [[Row([.integer(0)])], [Row([.integer(1)])]])
        try store.close()
    }

    @Test("A command leaves a former primary that answers first")
    func commandAfterPromotion() async throws {
        let primary = try PostgreSQLServer()
        let standby = try PostgreSQLServer(standbyOf: primary)
        try await primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        let (hosts, key) = ("host=\(primary.folder),\(standby.folder)", SymmetricKey.random())
        let store = try PostgreSQLStore(
            PostgreSQLAddress("\(hosts) dbname=postgres user=postgres"), storageKey: key, parts: [Counters.part], access: .shared)
        try await store.commit(Counters.add(1))
        try standby.promote()
        try await primary.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        try #require(store.promotions).look()
        try await store.commit(Counters.increment(1))
        try store.close()
        // Knowledge of the servers is kept for the text of an address: this one stands for another process.
        let command = try PostgreSQLStore(
            existing: PostgreSQLAddress("\(hosts) user=postgres dbname=postgres"), storageKey: key, parts: [Counters.part])
        #expect(try command.read(Counters.value(1)) == 1)
        try command.close()
    }

    /// The former primary answers first. It acknowledges what it is given, or waits in vain for the standby that was promoted.
    @Test(
        "A node that starts while a former primary answers gives it nothing", arguments: [PostgreSQLStore.Access.shared, .exclusive],
        [true, false])
    func startAfterPromotion(access: PostgreSQLStore.Access, isHanging: Bool) async throws {
        let primary = try PostgreSQLServer()
        let standby = try PostgreSQLServer(standbyOf: primary)
        try await primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        let (hosts, key) = ("host=\(primary.folder),\(standby.folder)", SymmetricKey.random())
        let before = try PostgreSQLStore(
            PostgreSQLAddress("\(hosts) dbname=postgres user=postgres"), storageKey: key, parts: [Counters.part], access: access)
        try await before.commit(Counters.add(1))
        try before.close()
        try standby.promote()
        if !isHanging { try await primary.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()") }
        let former = try PostgreSQLConnection(to: PostgreSQLAddress(primary.address))
        let position = Statement("SELECT name, batch FROM store_writer")
        let untouched = try former.run(position).rows

        // Knowledge of the servers is kept for the text of an address: this one stands for another process.
        let address = try PostgreSQLAddress("\(hosts) user=postgres dbname=postgres")
        let began = ContinuousClock.now
        let store = try PostgreSQLStore(address, storageKey: key, parts: [Counters.part], access: access)
        #expect(ContinuousClock.now - began < address.silenceLimit / 2)
        try await store.commit(Counters.increment(1))
        #expect(try store.read(Counters.value(1)) == 1)
        #expect(try former.run(position).rows == untouched)
        #expect(try former.run(Statement("SELECT count FROM \(Counters.table.name)")).rows == [Row([.integer(0)])])
        #expect(store.failure == nil)
        try store.close()
    }

    @Test("The first commit of a node that no standby confirms is an error that names the host and the cause")
    func startWithoutStandby() async throws {
        let primary = try PostgreSQLServer()
        let parameters = "dbname=postgres user=postgres connect_timeout=1"
        let first = try PostgreSQLStore(
            PostgreSQLAddress("host=\(primary.folder) \(parameters)"), storageKey: .random(), parts: [Counters.part], access: .shared)
        try first.close()
        try await primary.run("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        try primary.stop()
        try primary.start()
        var address = try PostgreSQLAddress("host=\(primary.folder),/nonexistent \(parameters)")
        address.silenceLimit = .seconds(1)
        let writer = Writer(address, .shared, closing: DispatchSemaphore(value: 0)) { _ in }
        let error = #expect(throws: StoreError.self) { try writer.begin() }
        #expect(
            error?.message == "PostgreSQL (database postgres on \(primary.folder)) has not committed within 1 s: "
                + "look at the server, its locks and its standby")
    }

    @Test("A commit that a former primary does not acknowledge is made at the promoted standby once that is known")
    func hangingCommit() async throws {
        let primary = try PostgreSQLServer()
        let standby = try PostgreSQLServer(standbyOf: primary)
        try await primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        let address = try PostgreSQLAddress("host=\(primary.folder),\(standby.folder) dbname=postgres user=postgres")
        let store = try PostgreSQLStore(address, storageKey: .random(), parts: [Counters.part], access: .shared)
        try await store.commit(Counters.add(1))
        try standby.promote()
        // It waits for the standby, which has left, for 30 s if nothing else ends the wait.
        async let count = store.commit(Counters.increment(1))
        let observer = try PostgreSQLConnection(to: PostgreSQLAddress(primary.address))
        let waiting = Statement("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        try await eventually { try observer.run(waiting).rows == [Row([.integer(1)])] }
        let watch = try #require(store.promotions)
        let began = ContinuousClock.now
        watch.look()
        #expect(try await count == 0)
        #expect(ContinuousClock.now - began < store.address.silenceLimit / 2)
        #expect(try store.read(Counters.value(1)) == 1)
        try store.close()
    }

    @Test("A session that waits for notifications leaves a former primary")
    func listening() async throws {
        let primary = try PostgreSQLServer()
        let standby = try PostgreSQLServer(standbyOf: primary)
        let address = try PostgreSQLAddress("host=\(primary.folder),\(standby.folder) dbname=postgres user=postgres")
        let (isOpen, pipe) = (Mutex<Int>.Box(), Pipe())
        let interruption = pipe.fileHandleForReading.fileDescriptor
        let former = Task {
            let connection = try PostgreSQLConnection.open(address, name: "test")
            _ = isOpen.increment()
            return try connection.notifications(until: .now + .seconds(60), orReadable: interruption)
        }
        try await eventually { isOpen.value == 1 }
        try standby.promote()
        _ = try PostgreSQLConnection.open(address, name: "test") { made throws(StoreError) in
            if made.timeline == 1 { throw StoreError(code: .unavailable, message: "suspended at that moment") }
        }
        await #expect {
            try await former.value
        } throws: { error in
            if case PostgreSQLError.connectionLost = error { true } else { false }
        }
        withExtendedLifetime(pipe) {}
    }

    @Test("Any session attributes find the primary, whichever host is first")
    func standbyFirst() throws {
        let primary = try PostgreSQLServer()
        let standby = try PostgreSQLServer(standbyOf: primary)
        for attributes in ["any", "read-write", "primary", "prefer-standby"] {
            let address = try PostgreSQLAddress(
                "host=\(standby.folder),\(primary.folder) dbname=postgres user=postgres target_session_attrs=\(attributes)")
            let connection = try PostgreSQLConnection.open(address, name: "test")
            #expect(connection.address.description == "database postgres on \(primary.folder)")
        }
        let address = try PostgreSQLAddress(
            "host=\(standby.folder),\(primary.folder) dbname=postgres user=postgres target_session_attrs=standby")
        let error = #expect(throws: StoreError.self) { try PostgreSQLConnection.open(address, name: "test") }
        #expect(error?.message.contains("PostgreSQL (database postgres on \(standby.folder)) is a standby: give the primary") == true)
    }
}
