package import CPostgres
package import Core
import Foundation
import Storage

/// libpq, loaded at run time: a value exists only if loading succeeded.
package struct PostgreSQLLibrary: Sendable {
    package static let soname = CPOSTGRES_SONAME
    package static let debianPackage = "libpq5"
    /// Whether a version of the library has pipeline mode.
    static func supports(_ version: Int32) -> Bool { version >= 14_00_00 }

    private static let opened = Result { () throws(OptionalLibraryError) in try PostgreSQLLibrary(opening: soname) }

    /// Filled before it is shared, read-only from then on and never freed: safe to share.
    package nonisolated(unsafe) let table: UnsafePointer<cpostgres>

    /// The library, loaded by the first call.
    ///
    /// - Throws: ``OptionalLibraryError`` when it is not installed, or lacks a function.
    package static func load() throws(OptionalLibraryError) -> PostgreSQLLibrary {
        try opened.get()
    }

    init(opening soname: String) throws(OptionalLibraryError) {
        var functions = cpostgres()
        func failure(_ reason: String) -> OptionalLibraryError {
            OptionalLibraryError(library: soname, debianPackage: Self.debianPackage, reason: reason)
        }
        if let reason = cpostgres_open(soname, &functions) { throw failure(String(cString: reason)) }
        guard Self.supports(functions.PQlibVersion()) else { throw failure("it is older than version 14") }
        let table = UnsafeMutablePointer<cpostgres>.allocate(capacity: 1)
        table.initialize(to: functions)
        self.table = UnsafePointer(table)
    }

    /// Begins to connect. A later value of a parameter replaces an earlier one.
    ///
    /// - Returns: a `PGconn`, to be closed by the caller.
    func startConnecting(_ parameters: [(name: String, value: String)]) throws(StoreError) -> OpaquePointer {
        let (names, values) = (parameters.map { strdup($0.name) }, parameters.map { strdup($0.value) })
        defer { for text in names + values { free(text) } }
        let terminated = (names.map { UnsafePointer($0) } + [nil], values.map { UnsafePointer($0) } + [nil])
        guard let connection = table.pointee.PQconnectStartParams(terminated.0, terminated.1, 0) else {
            throw StoreError(code: .unavailable, message: "there is no memory for a connection to PostgreSQL")
        }
        return connection
    }

    /// The parameters, and libpq's additions: from its environment variables, its service file and its defaults. Without secrets.
    func completed(_ parameters: [(name: String, value: String)]) throws(StoreError) -> [String: String] {
        // libpq refuses this value once it has read all parameters, before it connects.
        let connection = try startConnecting(parameters + [("sslmode", "none")])
        defer { table.pointee.PQfinish(connection) }
        guard let options = table.pointee.PQconninfo(connection) else { return [:] }
        return take(options).values
    }

    /// Why libpq refuses the parameters, or those that it adds itself, before it connects; nil if it would connect. Values of its keepalive parameters
    /// are read later.
    ///
    /// - Parameter port: of one of the hosts; empty for libpq's own.
    func refusal(at port: String, of parameters: [(name: String, value: String)]) throws(StoreError) -> String? {
        // Once it has accepted these parameters, libpq fails at this address, and names it. With a password it reads no password file, of which it
        // may print warnings.
        let noAddress = "no-address"
        let last = [("host", noAddress), ("hostaddr", noAddress), ("port", port.isEmpty ? "1" : port), ("password", "none")]
        let connection = try startConnecting(parameters + last)
        defer { table.pointee.PQfinish(connection) }
        let message = table.pointee.PQerrorMessage(connection).map { String(cString: $0) } ?? ""
        return message.contains(noAddress) ? nil : message.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The values of parameters except secrets, and whether there was a secret. Frees the options.
    func take(_ options: UnsafeMutablePointer<cpq_conninfo_option>) -> (values: [String: String], hasSecret: Bool) {
        defer { table.pointee.PQconninfoFree(options) }
        var (values, hasSecret) = ([String: String](), false)
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                if option.pointee.dispchar.map({ String(cString: $0) }) == "*" {
                    hasSecret = true
                } else {
                    values[String(cString: keyword)] = String(cString: value)
                }
            }
            option += 1
        }
        return (values, hasSecret)
    }
}
