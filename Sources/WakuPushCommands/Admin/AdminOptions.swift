import ArgumentParser
import NodeAssembly
import StatusServer
import Storage
import StoreSQLite
import StatusProtocol
import WakuCrypto

/// What every admin command takes.
struct AdminOptions: ParsableArguments {
    @Option(help: "The node's data folder. [default: data]")
    var data: String?

    @Option(help: "The node's key file: needed to open what is sealed.")
    var identity: String?

    @Option(help: "The daemon's configuration file.")
    var config: String?

    @Flag(help: "Print JSON.")
    var json = false

    var identityFile: String? { identity ?? Environment.string("identity") }

    func folder(of command: Admin) -> String {
        data ?? command.data ?? Environment.string("data") ?? "data"
    }

    /// - Throws: ``CommandFailure`` when there is none.
    func requiredIdentity(_ why: String) throws(CommandFailure) -> PrivateKey {
        guard let identityFile else { throw CommandFailure(.usage, "--identity is missing: \(why)") }
        return try IdentityFile.read(identityFile)
    }

    func openStore(of command: Admin, unsealing: Bool = false) throws -> SQLiteStore {
        let identity = unsealing ? try requiredIdentity("what is registered is sealed with the node's key") : nil
        return try NodeAssembly.existingStore(in: folder(of: command), of: identity)
    }
}

/// How an operator names a registrant: a key hash, a public key in either form, or the beginning of a hash that only one has.
struct RegistrantArgument: ExpressibleByArgument {
    let prefix: String

    init?(argument: String) {
        if let key = PublicKeyArgument(argument: argument)?.key {
            prefix = KeyHash(of: key).hex
        } else {
            let digits = argument.hasPrefix("0x") ? String(argument.dropFirst(2)) : argument
            guard (1...128).contains(digits.utf8.count), digits.utf8.allSatisfy({ hexNibble($0) != nil }) else { return nil }
            prefix = digits.lowercased()
        }
    }

    func resolve(in store: any Store) throws -> KeyHash {
        let found = try store.read(StatusServer.Registrations.keyHashes(prefix: prefix, limit: 2))
        guard let first = found.first else { throw CommandFailure(.data, "no registrant's key hash begins with \(prefix)") }
        guard found.count == 1 else { throw CommandFailure(.usage, "several key hashes begin with \(prefix): give more digits") }
        return first
    }
}
