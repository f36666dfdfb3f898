import ArgumentParser
import NodeAPI
import StatusProtocol
import StatusServer
import Storage
import WakuCrypto

/// A registrant on the command line: a key hash, a public key (compressed or not), or an unambiguous prefix of a key hash. With protocols of other
/// packages also an unambiguous prefix of an owner's compressed public key.
struct RegistrantArgument: DescribedArgument {
    static let allowedValues = "a key hash, its beginning, or a public key, in hexadecimal digits"

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
