import Foundation
import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

/// A TCP server with a certificate of its own CA, and a role with a password.
@Suite("PostgreSQL over TLS, with SCRAM", .timeLimit(.minutes(5)))
struct TransportTests {
    private let folder: TemporaryFolder
    private let server: PostgreSQLServer
    private let port: UInt16
    private let password = UUID().uuidString

    init() async throws {
        folder = try TemporaryFolder()
        port = try freePort()
        server = try PostgreSQLServer(settings: ["listen_addresses": "127.0.0.1", "port": "\(port)"])
        try await makeCertificates()
        for name in ["server.crt", "server.key"] { try server.install(folder.path + "/" + name, as: name) }
        try await server.run(
            "CREATE ROLE push LOGIN PASSWORD '\(password)'", "CREATE DATABASE push OWNER push", "ALTER SYSTEM SET ssl = on",
            "SELECT pg_reload_conf()")
        try write("*:*:*:push:\(password)", to: "password")
        try write("*:*:*:push:wrong-\(password)", to: "wrong")
    }

    private func write(_ text: String, to name: String) throws {
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: folder.path + "/" + name, contents: Data(text.utf8), attributes: attributes) else {
            throw CocoaError(.fileWriteUnknown)
        }
    }

    /// `ca.crt` has signed `server.crt`, for localhost; `other.crt` is an unrelated CA.
    private func makeCertificates() async throws {
        let path = folder.path
        for name in ["ca", "other"] {
            try await openSSL(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                "/CN=\(name)", "-keyout", "\(path)/\(name).key", "-out", "\(path)/\(name).crt")
        }
        try await openSSL(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-keyout",
            "\(path)/server.key", "-out", "\(path)/server.csr")
        try write("subjectAltName=DNS:localhost", to: "extensions")
        try await openSSL(
            "x509", "-req", "-in", "\(path)/server.csr", "-CA", "\(path)/ca.crt", "-CAkey", "\(path)/ca.key", "-CAcreateserial", "-days",
            "2", "-extfile", "\(path)/extensions", "-out", "\(path)/server.crt")
    }

    private func openSSL(_ arguments: String...) async throws {
        let ended = try await ExternalTool.run("openssl", arguments)
        #expect(ended.status == 0, "\(ended.errors)")
    }

    private func address(host: String = "localhost", ca: String = "ca", passwords: String = "password") throws -> PostgreSQLAddress {
        try PostgreSQLAddress(
            "postgresql://push@\(host):\(port)/push?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=\(folder.path)/\(ca).crt"
                + "&passfile=\(folder.path)/\(passwords)")
    }

    private func open(_ address: PostgreSQLAddress) throws -> PostgreSQLStore {
        try PostgreSQLStore(address, storageKey: .random(), parts: [Counters.part])
    }

    @Test("A store works over TLS, and wrong certificates and passwords are refused")
    func transport() async throws {
        // The server applies its settings soon after the reload.
        try await eventually { (try? PostgreSQLConnection(to: address())) != nil }
        let store = try open(address())
        try await store.commit(Counters.add(1))
        #expect(try store.read(Counters.value(1)) == 0)
        let connection = try PostgreSQLConnection(to: address())
        let encrypted = Statement("SELECT ssl::integer::bigint FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        #expect(try connection.run(encrypted).rows == [Row([.integer(1)])])

        for (address, reason) in [
            (try address(passwords: "wrong"), "password authentication failed"),
            (try address(passwords: "missing"), "no password for this role"),
            (try address(ca: "other"), "no authority in sslrootcert signed it"),
            (try address(host: "push.example"), "does not match host name"),
        ] {
            let error = #expect(throws: StoreError.self) { try open(address) }
            #expect(error?.code == .unavailable)
            #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
            #expect(error?.message.contains(password) == false)
        }
    }

    @Test("The server ends the session of a machine that is gone, which may hold the lock, after some seconds")
    func keepalives() throws {
        let connection = try PostgreSQLConnection.open(address(), name: "test")
        let names = ["tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"]
        // As the server's kernel has them.
        let shown = try names.map { try connection.run(Statement("SHOW \($0)", isPrepared: false)).rows.first?.text(0) }
        #expect(shown == ["5", "2", "2", "10000"])
    }
}
