import ArgumentParser
import NodeAssembly
import PushNode
import Storage
import WakuCrypto

/// Options of all admin commands.
struct AdminOptions: ParsableArguments {
    @Option(help: "The node's data folder. [default: data]")
    var data: String?

    @Option(help: "The node's PostgreSQL database, as in serve's --store. [default: that of the running daemon]")
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

    /// The store that the options name, otherwise that of the daemon that runs on the data folder, or the database in the folder.
    ///
    /// A folder may still have the database from before the store became PostgreSQL: a command that used it would show, or change, rows that no
    /// daemon serves.
    ///
    /// - Throws: ``CommandFailure`` also when a daemon may run on the folder and does not answer.
    func location() async throws -> StoreLocation {
        if let named = Settings.store.value(admin.store) { return try StoreLocation(option: named) }
        return try StoreLocation(option: try await AdminClient.setup(of: folder)?.store)
    }

    /// - Parameter alternative: the alternative for an operator with another store, for the error message.
    /// - Throws: ``CommandFailure`` unless the database is in the data folder.
    func requireDataFolder(_ alternative: String) async throws {
        guard case .postgreSQL = try await location() else { return }
        throw CommandFailure(.usage, "the store is PostgreSQL, which has its own tools: \(alternative)")
    }

    /// Warns if no daemon may use the store.
    ///
    /// - Throws: ``CommandFailure`` if it is to be changed nevertheless.
    func openStore(unsealing: Bool = false, isChanging: Bool = false) async throws -> any Store {
        let identity = unsealing ? try admin.requiredIdentity("registrations are encrypted with a key derived from the node's") : nil
        let location = try await self.location()
        do {
            let store = try NodeAssembly.existingStore(at: location, in: folder, of: identity)
            if let obstacle = try store.read(StoreTransfer.obstacle()) {
                guard !isChanging else { throw CommandFailure(.data, obstacle) }
                CommandFailure.report("warning: \(obstacle)")
            }
            return store
        } catch let error as StoreError {
            guard error.code == .missing, location == .dataFolder else { throw error }
            throw CommandFailure(.data, error.message + " If its store is PostgreSQL, give --store")
        }
    }
}
