import Storage
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

@Suite("The hosts of a PostgreSQL database", .timeLimit(.minutes(2)))
struct HostTests {
    // MARK: Decisions

    @Test(
        "They are listed with their addresses and ports",
        arguments: [
            ([:], [PostgreSQLHost()]), (["port": "5433"], [PostgreSQLHost(port: "5433")]),
            (["host": "a,/run,", "port": "1"], ["a", "/run", ""].map { PostgreSQLHost(name: $0, port: "1") }),
            (["host": "a,b", "port": "1,"], [PostgreSQLHost(name: "a", port: "1"), PostgreSQLHost(name: "b")]),
            (
                ["host": "a,b", "hostaddr": "::1,"],
                [PostgreSQLHost(name: "a", address: "::1"), PostgreSQLHost(name: "b")]
            ), (["hostaddr": "10.0.0.1,10.0.0.2"], [PostgreSQLHost(address: "10.0.0.1"), PostgreSQLHost(address: "10.0.0.2")]),
        ] as [([String: String], [PostgreSQLHost])])
    func list(parameters: [String: String], hosts: [PostgreSQLHost]) throws {
        #expect(try PostgreSQLHost.list(parameters) == hosts)
    }

    @Test(
        "Lists of different lengths are refused",
        arguments: [["host": "a,b", "hostaddr": "::1"], ["host": "a,b", "port": "1,2,3"], ["port": "1,2"]])
    func mismatch(parameters: [String: String]) {
        #expect(throws: StoreError.self) { try PostgreSQLHost.list(parameters) }
    }

    @Test("Each of several has the operator's time limit, or a short one")
    func connectLimit() {
        #expect(PostgreSQLHost.connectLimit("7", isOnly: false) == .seconds(7))
        #expect(PostgreSQLHost.connectLimit("7", isOnly: true) == .seconds(7))
        for setting in [nil, "", "0", "-1", "x"] {
            #expect(PostgreSQLHost.connectLimit(setting, isOnly: false) == .seconds(3))
            #expect(PostgreSQLHost.connectLimit(setting, isOnly: true) == .seconds(12))
        }
    }

    @Test("A host with several addresses, and each of several hosts, is one of several")
    func onlyHost() {
        let hosts = ["a", "b"].map { PostgreSQLHost(name: $0) }
        let places = ["::1", "127.0.0.1"].map { PostgreSQLHost(name: "a", address: $0) }
        #expect([hosts[0]].isOnly(resolvedTo: [places[0]]))
        #expect(![hosts[0]].isOnly(resolvedTo: places) && !hosts.isOnly(resolvedTo: [places[0]]) && !hosts.isOnly(resolvedTo: places))
    }

    @Test("The host that was used last comes first, with its address first")
    func order() {
        let named = ["a", "b", "c"].map { PostgreSQLHost(name: $0, port: "1") }
        #expect(named.beginning(with: nil) == named)
        #expect(named.beginning(with: PostgreSQLHost(name: "c", address: "::1", port: "1")) == [named[2], named[0], named[1]])
        #expect(named.beginning(with: PostgreSQLHost(name: "c", address: "::1", port: "2")) == named)
        let resolved = ["::1", "127.0.0.1"].map { PostgreSQLHost(name: "b", address: $0, port: "1") }
        #expect(resolved.beginning(with: resolved[1]) == [resolved[1], resolved[0]])
    }

    @Test("Names are resolved; sockets, the default host and given addresses are not")
    func resolution() throws {
        let address = try PostgreSQLAddress("host=db.example dbname=push")
        #expect(
            try PostgreSQLHost(name: "127.0.0.1", port: "1").resolved(in: address)
                == [PostgreSQLHost(name: "127.0.0.1", address: "127.0.0.1", port: "1")])
        let unresolved = [
            PostgreSQLHost(), PostgreSQLHost(name: "/run"), PostgreSQLHost(name: "@x"), PostgreSQLHost(name: "a", address: "::1"),
        ]
        for host in unresolved {
            #expect(try host.resolved(in: address) == [host])
        }
        // Not a valid name, so that no name server is asked.
        let error = #expect(throws: StoreError.self) { try PostgreSQLHost(name: "a..b", port: "7").resolved(in: address) }
        #expect(error?.code == .unavailable)
        let start = "PostgreSQL (database push on a..b:7) can't be reached: the host name can't be resolved: "
        #expect(error?.message.hasPrefix(start) == true)
    }

    @Test("An address is narrowed to a host")
    func narrowed() throws {
        let address = try PostgreSQLAddress("host=a,b hostaddr=10.0.0.1,10.0.0.2 port=1,2 dbname=push").inSchema("s")
        let narrowed = address.at(PostgreSQLHost(name: "b", address: "10.0.0.2", port: "2"))
        #expect(narrowed.description == "database push on b:2" && narrowed.schema == "s")
        #expect(narrowed.parameters == ["host": "b", "hostaddr": "10.0.0.2", "port": "2", "dbname": "push"])
        #expect(address.at(PostgreSQLHost(name: "/run")).parameters == ["host": "/run", "dbname": "push"])
        #expect(try PostgreSQLAddress("service=push").at(PostgreSQLHost(name: "b")).description == "service push on b")
    }

    @Test("The errors of all hosts are one; one that an operator must correct decides about the exit code")
    func combinedErrors() {
        let (away, wrong) = (StoreError(code: .unavailable, message: "a"), StoreError(code: .unsuitable, message: "b"))
        #expect(StoreError(ofHosts: [away]) == away)
        #expect(StoreError(ofHosts: [away, wrong, away]) == StoreError(code: .unsuitable, message: "a; b"))
    }

    @Test("libpq completes the parameters, without secrets, and does not connect")
    func completion() throws {
        let completed = try PostgreSQLAddress.library().completed([("host", "a,b"), ("host", "c,d"), ("password", "hunter2")])
        #expect(completed["host"] == "c,d" && completed["port"] != nil)
        #expect(!completed.values.contains("hunter2"))
    }

    // MARK: Servers

    /// A server behind a proxy as the first host, and the server itself as the second one.
    private func twoHosts(_ parameters: String = "connect_timeout=1") throws -> (PostgreSQLAddress, PostgreSQLProxy, PostgreSQLServer) {
        let server = try PostgreSQLServer.shared()
        let proxy = try PostgreSQLProxy(server)
        return (try PostgreSQLAddress("host=\(proxy.path),\(server.folder) dbname=postgres user=postgres \(parameters)"), proxy, server)
    }

    @Test("A host that accepts connections and does not answer, or ends them, is left for the next one", arguments: [true, false])
    func unusableHost(isSilent: Bool) throws {
        let (address, proxy, server) = try twoHosts()
        let attempts = Mutex<Int>.Box()
        proxy.inspect { direction, _ in
            if direction == .toServer { _ = attempts.increment() }
            return isSilent ? .hold : .cut
        }
        let connection = try PostgreSQLConnection.open(address, name: "test")
        #expect(connection.address.description == "database postgres on \(server.folder)")
        #expect(connection.silenceLimit == address.silenceLimit)
        // The next connection begins with the host that works.
        #expect(attempts.value > 0)
        let before = attempts.value
        _ = try PostgreSQLConnection.open(address, name: "test")
        #expect(attempts.value == before)
    }

    @Test("A server that stops responding after the connection was made is left for the next one")
    func silentSession() throws {
        let (address, proxy, server) = try twoHosts()
        // ReadyForQuery ends the connection's start.
        let isReady = Mutex<Int>.Box()
        proxy.inspect { direction, bytes in
            if direction == .toServer, isReady.value > 0 { return .hold }
            if direction == .toClient, bytes.suffix(6).starts(with: [0x5A, 0, 0, 0, 5]) { _ = isReady.increment() }
            return .pass
        }
        #expect(try PostgreSQLConnection.open(address, name: "test").address.description == "database postgres on \(server.folder)")
        #expect(isReady.value == 1)
    }

    @Test("A host that the caller does not accept is left for the next one")
    func refusedHost() throws {
        let (address, proxy, server) = try twoHosts()
        var seen: [String] = []
        let connection = try PostgreSQLConnection.open(address, name: "test") { made throws(StoreError) in
            seen.append(made.address.description)
            if seen.count == 1 { throw StoreError(code: .unavailable, message: "a former primary") }
        }
        #expect(seen == ["database postgres on \(proxy.path)", "database postgres on \(server.folder)"])
        #expect(connection.address.description == seen.last)
    }

    @Test("Another address of the server in use does not count as a promoted one")
    func anotherAddress() throws {
        let (address, proxy, _) = try twoHosts()
        let connection = try PostgreSQLConnection.open(address, name: "test")
        try #require(PromotionWatch(address, connection)).look()
        #expect(KnownPrimary.of(address.connectionString).host?.name == proxy.path)
    }

    @Test("If none can be used, the error names each host and its cause")
    func noHost() throws {
        let (first, second) = (try PostgreSQLProxy(PostgreSQLServer.shared()), try TemporaryFolder())
        first.inspect { _, _ in .hold }
        let address = try PostgreSQLAddress("host=\(first.path),\(second.path) dbname=push user=postgres connect_timeout=1")
        let error = #expect(throws: StoreError.self) { try PostgreSQLConnection.open(address, name: "test") }
        #expect(error?.code == .unavailable)
        let messages = (error?.message ?? "").split(separator: "; PostgreSQL ")
        #expect(messages.count == 2)
        #expect(messages.first?.hasPrefix("PostgreSQL (database push on \(first.path)) can't be reached: ") == true)
        #expect(messages.first?.hasSuffix("it does not answer") == true)
        #expect(messages.last?.hasPrefix("(database push on \(second.path)) can't be reached: ") == true)
    }

    @Test("A store leaves a host that hangs, though its connections stay open, and loses and repeats nothing")
    func hangingHost() async throws {
        let fixture = try StoreFixture()
        let proxy = try PostgreSQLProxy(fixture.server)
        var address = try fixture.address(host: "\(proxy.path),\(fixture.server.folder) connect_timeout=1")
        address.silenceLimit = .milliseconds(300)
        let store = try PostgreSQLStore(address, storageKey: fixture.storageKey, parts: [Counters.part], access: .exclusive)
        try await store.commit(Counters.add(1))
        #expect(try store.read(Counters.value(1)) == 0)
        proxy.inspect { _, _ in .hold }
        #expect(try await store.commit(Counters.increment(1)) == 0)
        #expect(try store.read(Counters.value(1)) == 1)
        #expect(store.failure == nil)
        try store.close()
    }
}
