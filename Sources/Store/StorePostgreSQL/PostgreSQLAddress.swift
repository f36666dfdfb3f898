import CPostgres
import Core
package import Storage

/// The address of a database: a connection string of libpq, as a URI or as keywords and values.
///
/// <https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING>
package struct PostgreSQLAddress: Hashable, Sendable, CustomStringConvertible {
    package let connectionString: String
    /// The longest silence of a server during an exchange. After it the connection is closed, because another server may have taken over.
    package var silenceLimit = Duration.seconds(30)
    /// The hosts and the database, without anything secret: `database push on db1.example:5432`.
    package let description: String
    /// The only schema that is used; nil: `search_path` of the connection string or the role applies.
    package private(set) var schema: String?

    /// - Throws: `StoreError` with `invalid` when libpq rejects the string or it contains a password; `unavailable` without libpq.
    package init(_ text: String) throws(StoreError) {
        let library = try Self.library()
        var message: UnsafeMutablePointer<CChar>?
        // libpq's message may quote the string, including a password.
        guard let options = library.table.pointee.PQconninfoParse(text, &message) else {
            library.table.pointee.PQfreemem(message)
            throw StoreError(
                code: .invalid,
                message: "the store's address is not a connection string of PostgreSQL: give one like postgresql://user@host/database")
        }
        defer { library.table.pointee.PQconninfoFree(options) }
        var values: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                guard option.pointee.dispchar.map({ String(cString: $0) }) != "*" else {
                    throw StoreError(
                        code: .invalid,
                        message: "the store's address has a password, which others may see: put it into a file of mode 0600, and name that "
                            + "by PGPASSFILE or passfile=")
                }
                values[String(cString: keyword)] = String(cString: value)
            }
            option += 1
        }
        connectionString = text
        description = Self.describe(values)
    }

    /// The same database restricted to one existing schema.
    package func inSchema(_ name: String) -> PostgreSQLAddress {
        var address = self
        address.schema = name
        return address
    }

    static func library() throws(StoreError) -> PostgreSQLLibrary {
        do {
            return try PostgreSQLLibrary.load()
        } catch {
            throw StoreError(code: .unavailable, message: error.description)
        }
    }

    private static func describe(_ values: [String: String]) -> String {
        func list(_ key: String) -> [String] {
            values[key].map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
        }
        let (hosts, ports) = (values["host"] == nil ? list("hostaddr") : list("host"), list("port"))
        let places = hosts.enumerated().map { index, host in
            let port = ports.count == 1 ? ports[0] : index < ports.count ? ports[index] : ""
            return port.isEmpty || port == "5432" ? host : "\(host):\(port)"
        }
        let named = values["dbname"].map { "database \($0)" } ?? values["service"].map { "service \($0)" }
        let database = named ?? "the default database"
        return places.isEmpty ? database : "\(database) on \(places.joined(separator: ", "))"
    }
}
