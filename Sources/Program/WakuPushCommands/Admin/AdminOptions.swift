import ArgumentParser
import NodeAssembly
import Storage
import WakuCrypto

/// Options of all admin commands.
struct AdminOptions: ParsableArguments {
    @Option(help: "The node's data folder. [default: data]")
    var data: String?

    @Option(help: "The node's PostgreSQL database, as in serve's --store.")
    var store: String?

    @Option(help: "The node's key file, needed to decrypt stored data. The first one counts, as in serve.")
    var identity: [String] = []

    @Option(help: "The daemon's configuration file.")
    var config: String?

    @Flag(help: "Print JSON.")
    var json = false

    /// The database belongs to the first identity of the daemon.
    var identityFile: String? { identity.first ?? Environment.list("identity").first }

    /// - Parameter reason: why the key is needed, for the error message.
    /// - Throws: ``CommandFailure`` when there is none.
    func requiredIdentity(_ reason: String) throws(CommandFailure) -> PrivateKey {
        guard let identityFile else { throw CommandFailure(.usage, "--identity is missing: \(reason)") }
        return try IdentityFile.read(identityFile)
    }

    func location() throws(StoreError) -> StoreLocation {
        try StoreLocation(option: store)
    }

    /// - Parameter alternative: the alternative for an operator with another store, for the error message.
    /// - Throws: ``CommandFailure`` unless the database is in the data folder.
    func requireDataFolder(_ alternative: String) throws {
        guard case .postgreSQL = try location() else { return }
        throw CommandFailure(.usage, "the store is PostgreSQL, which has its own tools: \(alternative)")
    }
}

/// A command of `waku-push admin`.
protocol AdminCommand: ReportingCommand {
    var command: Admin { get }
    var admin: AdminOptions { get }
}

extension AdminCommand {
    /// The path of the data folder.
    var folder: String { admin.data ?? command.data ?? Environment.string("data") ?? "data" }

    /// - Throws: ``CommandFailure`` when the folder can't be opened.
    func client() throws(CommandFailure) -> AdminClient { try AdminClient(folder: folder) }

    /// - Parameter other: the store, if it is not the one that the options name.
    func openStore(unsealing: Bool = false, at other: StoreLocation? = nil) throws -> any Store {
        let identity = unsealing ? try admin.requiredIdentity("registrations are encrypted with a key derived from the node's") : nil
        let location = try other ?? admin.location()
        do {
            return try NodeAssembly.existingStore(at: location, in: folder, of: identity)
        } catch {
            guard error.code == .missing, location == .dataFolder else { throw error }
            throw CommandFailure(.data, error.message + " If its store is PostgreSQL, give --store")
        }
    }
}
