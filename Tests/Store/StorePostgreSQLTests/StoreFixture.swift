import Foundation
import Storage
import TestSupport
import WakuCrypto

@testable import StorePostgreSQL

/// A separate schema in which stores of ``Counters`` are opened.
struct StoreFixture {
    let server: PostgreSQLServer
    let schema: String
    let storageKey = SymmetricKey.random()

    init(_ server: PostgreSQLServer? = nil) throws {
        self.server = try server ?? PostgreSQLServer.shared()
        schema = Database.randomSchema()
        try Database.create(schema, in: self.server)
    }

    /// - Parameter host: the host of a proxy; nil for the server itself.
    func address(host: String? = nil, _ options: String = "") throws -> PostgreSQLAddress {
        try PostgreSQLAddress(
            "host=\(host ?? server.folder) dbname=postgres user=postgres options='-csearch_path=\(schema) \(options)'")
    }

    func open(
        host: String? = nil, _ options: String = "", access: PostgreSQLStore.Access = .beside, silenceLimit: Duration = .seconds(30)
    ) throws -> PostgreSQLStore {
        var address = try address(host: host, options)
        (address.silenceLimit, address.longestSilence) = (silenceLimit, .zero)
        return try PostgreSQLStore(address, storageKey: storageKey, parts: [Counters.part], access: access)
    }

    /// A connection beside the stores.
    func connection() throws -> PostgreSQLConnection {
        try PostgreSQLConnection(to: address())
    }
}

/// Schemas of a server: each is a database of its own for a store.
enum Database {
    static func randomSchema() -> String {
        "s" + UUID().uuidString.lowercased().filter { $0 != "-" }
    }

    static func create(_ schema: String, in server: PostgreSQLServer) throws {
        let connection = try PostgreSQLConnection(to: PostgreSQLAddress(server.address))
        _ = try connection.run(Statement("CREATE SCHEMA IF NOT EXISTS \(schema)", isPrepared: false))
    }

    /// The schema that stands for a folder, made by the first call.
    static func address(of folder: String) throws -> String {
        let schema = "s" + folder.lowercased().filter { $0.isHexDigit }.suffix(32)
        let server = try PostgreSQLServer.shared()
        try create(schema, in: server)
        return server.address + " options=-csearch_path=\(schema)"
    }
}
