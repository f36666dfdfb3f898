package import Storage
import WakuCrypto

/// A temporary schema in a database, deleted with all its tables at the end. Nothing else in the database is changed.
package struct TemporarySchema: Sendable {
    /// The address of the schema.
    package let address: PostgreSQLAddress
    private let name: String

    /// Creates it. Blocks.
    ///
    /// - Parameters:
    ///   - prefix: the prefix of its name, in lower case letters, digits and underscores; 16 random hex digits follow.
    ///   - address: the database.
    package init(prefix: String, in address: PostgreSQLAddress) throws(StoreError) {
        name = prefix + hexString(randomBytes(8))
        do {
            try Self.run("CREATE SCHEMA \(name)", at: address)
        } catch PostgreSQLError.refused(let state, _) where state.isPermission {
            throw StoreError(
                code: .permission,
                message: "this role may not create schemas in PostgreSQL (\(address)): GRANT CREATE ON DATABASE, or give another database")
        } catch {
            throw StoreError(explaining: error, at: address)
        }
        self.address = address.inSchema(name)
    }

    /// Deletes the schema with its contents. Blocks.
    ///
    /// - Throws: `StoreError` naming the schema that remains.
    package func drop() throws(StoreError) {
        do {
            try Self.run("DROP SCHEMA \(name) CASCADE", at: address)
        } catch {
            let reason = StoreError(explaining: error, at: address)
            throw StoreError(code: reason.code, message: "schema \(name) could not be deleted, drop it: \(reason.message)")
        }
    }

    private static func run(_ sql: String, at address: PostgreSQLAddress) throws {
        // The server's notices list the schema's contents; they are not printed.
        _ = try PostgreSQLConnection.open(address, name: "waku-push").run(Statement(sql, isPrepared: false))
    }
}
