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
    /// The longest silence during a read if the server answers another connection: long enough to read a table of 100 GB.
    package var longestSilence = Duration.seconds(600)
    /// The hosts and the database, without anything secret: `database push on db1.example:5432`.
    package private(set) var description: String
    /// The parameters of the connection string, by libpq's keywords.
    private(set) var parameters: [String: String]
    /// The only schema that is used; nil: `search_path` of the connection string or the role applies.
    package private(set) var schema: String?

    /// Keywords of libpq 16 to 18.
    private static let laterKeywords = [
        "gssdelegation", "load_balance_hosts", "max_protocol_version", "min_protocol_version", "oauth_client_id", "oauth_issuer",
        "oauth_scope", "require_auth", "servicefile", "sslcertmode", "sslkeylogfile", "sslnegotiation",
    ]
    /// Secrets that libpq does not mark as such, and libpq before 18 does not know.
    private static let secretKeys: Set = ["scram_client_key", "scram_server_key"]

    /// - Throws: `StoreError` with `invalid` when libpq rejects the string or it contains a password; `unavailable` without libpq.
    package init(_ text: String) throws(StoreError) {
        let library = try Self.library()
        var message: UnsafeMutablePointer<CChar>?
        // libpq's message may quote the string, including a password.
        guard let options = library.table.pointee.PQconninfoParse(text, &message) else {
            let reason = message.map { String(cString: $0) } ?? ""
            library.table.pointee.PQfreemem(message)
            if let keyword = Self.laterKeywords.first(where: { reason.hasSuffix("\"\($0)\"\n") }) {
                let version = library.table.pointee.PQlibVersion() / 1_00_00
                throw StoreError(
                    code: .invalid,
                    message: "the store's address has \(keyword)=, which libpq of version \(version) does not know: remove it, or install "
                        + "a later libpq")
            }
            throw StoreError(
                code: .invalid,
                message: "the store's address is not a connection string of PostgreSQL: give one like postgresql://user@host/database")
        }
        let (values, hasSecret) = library.take(options)
        guard !hasSecret, Self.secretKeys.isDisjoint(with: values.keys) else {
            throw StoreError(
                code: .invalid,
                message: "the store's address has a password, which others may see: put it into a file of mode 0600, and name that "
                    + "by passfile=")
        }
        connectionString = text
        parameters = values
        description = Self.describe(values)
    }

    /// Checks the values of all parameters, which libpq does only when it is to connect, with those of its environment variables and service file.
    /// Does not connect.
    ///
    /// - Throws: `StoreError` with `invalid` when libpq refuses one.
    package func requireAccepted() throws(StoreError) {
        let (library, all) = (try Self.library(), PostgreSQLConnection.parameters(of: self))
        let hosts = try PostgreSQLHost.list(try library.completed(all))
        var reason: String?
        for port in Set(hosts.map(\.port)).sorted() where reason == nil { reason = try library.refusal(at: port, of: all) }
        guard let reason else { return }
        let remedy =
            parameters["service"] == nil
            ? "" : "; a service file that PGSERVICEFILE names, or ~/.pg_service.conf, may be known to another process only"
        throw StoreError(code: .invalid, message: "libpq refuses the store's address: \(reason)\(remedy)")
    }

    /// The same database restricted to one existing schema.
    package func inSchema(_ name: String) -> PostgreSQLAddress {
        var address = self
        address.schema = name
        return address
    }

    /// The same database at one of its hosts.
    func at(_ host: PostgreSQLHost) -> PostgreSQLAddress {
        var address = self
        for (name, value) in [("host", host.name), ("hostaddr", host.address), ("port", host.port)] {
            address.parameters[name] = value.isEmpty ? nil : value
        }
        address.description = Self.describe(address.parameters)
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
        let hosts = (try? PostgreSQLHost.list(values)) ?? []
        let places = hosts.map(\.description).filter { !$0.isEmpty }
        let named = values["dbname"].map { "database \($0)" } ?? values["service"].map { "service \($0)" }
        let database = named ?? "the default database"
        return places.isEmpty ? database : "\(database) on \(places.joined(separator: ", "))"
    }
}
