import ArgumentParser
import Core
import NodeAPI
import NodeAssembly
import PushNode
import StatusServer
import Storage
import StorePostgreSQL
import StatusProtocol
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

extension StoreLocation {
    /// - Parameter option: the value of `--store`; nil: from the environment or the configuration file.
    init(option: String?) throws(StoreError) {
        guard let text = Settings.store.value(option) else {
            self = .dataFolder
            return
        }
        self = .postgreSQL(try PostgreSQLAddress(text))
    }
}

/// A registrant on the command line: a key hash, a public key (compressed or not), or an unambiguous prefix of a key hash. With protocols of other
/// packages also an unambiguous prefix of an owner's compressed public key.
struct RegistrantArgument: ExpressibleByArgument {
    /// A prefix of the key hash.
    let prefix: String
    /// A prefix of the compressed public key.
    let keyPrefix: String

    init?(argument: String) {
        if let key = PublicKeyArgument(argument: argument)?.key {
            prefix = KeyHash(of: key).hex
            keyPrefix = hexString(key.compressed)
        } else {
            let digits = argument.hasPrefix("0x") ? String(argument.dropFirst(2)) : argument
            guard (1...128).contains(digits.utf8.count), digits.utf8.allSatisfy({ hexNibble($0) != nil }) else { return nil }
            prefix = digits.lowercased()
            keyPrefix = prefix
        }
    }

    /// - Throws: `ValidationError` that describes a valid value.
    static func parse(_ text: String) throws -> Self {
        guard let argument = Self(argument: text) else {
            throw ValidationError("give a key hash, its beginning, or a public key, in hexadecimal digits")
        }
        return argument
    }

    func resolve(in store: any Store) throws -> KeyHash {
        guard let found = try resolveAll(in: store).keyHash else {
            throw CommandFailure(.data, "no registrant's key hash begins with \(prefix)")
        }
        return found
    }

    /// The registrant with Status, and the devices with protocols of other packages.
    func resolveAll(in store: any Store) throws -> (keyHash: KeyHash?, added: [AddedRegistration]) {
        let hashes = try store.read(StatusServer.Registrations.keyHashes(prefix: prefix, limit: 2))
        let isKey = prefix != keyPrefix
        // An owner may have a device with each protocol.
        let added = try AddedRegistration.find(OwnerFilter(prefix: keyPrefix), limit: isKey ? .max : 100, in: store)
        guard !hashes.isEmpty || !added.isEmpty else { throw CommandFailure(.data, "no registrant's key hash begins with \(prefix)") }
        guard isKey || hashes.count + Set(added.map(\.row.owner)).count == 1 else {
            throw CommandFailure(.usage, "several key hashes begin with \(prefix): give more digits")
        }
        return (hashes.first, added)
    }
}
