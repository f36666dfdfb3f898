import WakuCrypto

/// The swarm of an account according to a storage server: in errcode 6 and in `notify.monitor_ended`.
///
///     swarm 16 hex digits   snodes list of {ip, port_omq, pubkey_x25519 (hex), …}
///
/// It comes from a single server and may be false.
package struct SwarmHint: Hashable, Sendable {
    /// Limit of the servers of a hint; more than a swarm has.
    package static let maximumServerCount = 16

    package let swarm: UInt64
    /// The servers of the swarm, without invalid entries: the rules are those for the map.
    package let servers: [StorageServer]

    package init(swarm: UInt64, servers: [StorageServer]) {
        (self.swarm, self.servers) = (swarm, servers)
    }

    /// nil without a valid swarm id. A hint may lack servers.
    init?(swarm: ArraySlice<UInt8>?, snodes: ArraySlice<UInt8>?) {
        guard let swarm, let text = (try? BencodeValue(parsing: swarm, maximumValueCount: 1))?.bytes, text.count == 16,
            let id = UInt64(String(decoding: text, as: UTF8.self), radix: 16), text.allSatisfy({ hexNibble($0) != nil }),
            id != SwarmRing.noSwarm
        else { return nil }
        self.swarm = id
        let list = snodes.flatMap { try? BencodeValue(parsing: $0, maximumValueCount: 32 * Self.maximumServerCount) }?.list ?? []
        var keys: Set<[UInt8]> = []
        servers = list.prefix(Self.maximumServerCount).compactMap { entry in
            guard let server = Self.server(entry, swarm: id), keys.insert(server.publicKey).inserted else { return nil }
            return server
        }
    }

    private static func server(_ entry: BencodeValue, swarm: UInt64) -> StorageServer? {
        guard let fields = entry.dictionary, let ip = fields["ip"]?.bytes, let port = fields["port_omq"]?.integer,
            let key = fields["pubkey_x25519"]?.bytes
        else { return nil }
        return StorageServer(
            key: String(decoding: key, as: UTF8.self), ip: String(decoding: ip, as: UTF8.self), port: port, swarm: swarm)
    }
}

/// Parses hints and reuses the last result: when a swarm moves, a server sends thousands of equal hints in a row.
package struct SwarmHintReader: Sendable {
    private var last: (swarm: [UInt8]?, snodes: [UInt8]?, hint: SwarmHint?) = (nil, nil, nil)

    /// - Parameters:
    ///   - swarm: The bencoded value of the key `swarm`; nil if the key is missing.
    ///   - snodes: The bencoded value of the key `snodes`; nil if the key is missing.
    mutating func hint(swarm: ArraySlice<UInt8>?, snodes: ArraySlice<UInt8>?) -> SwarmHint? {
        guard let swarm else { return nil }
        guard last.swarm?[...] != swarm || last.snodes?[...] != snodes else { return last.hint }
        last = (Array(swarm), snodes.map { Array($0) }, SwarmHint(swarm: swarm, snodes: snodes))
        return last.hint
    }
}

/// `notify.monitor_ended`: a storage server has stopped monitoring an account because the account left the server's swarm.
///
///     @ account(33)   errcode   error   snodes, swarm: ``SwarmHint``
package struct MonitorEnded: Hashable, Sendable {
    package static let command = "notify.monitor_ended"
    /// Limit of the whole notice in bytes. Larger ones cannot be valid.
    static let maximumByteCount = 65_536
    private static let fields = ["@", "snodes", "swarm"].map { Array($0.utf8) }

    package let account: AccountID
    package let hint: SwarmHint?

    package struct Malformed: Error, Hashable, Sendable {
        package init() {}
    }

    /// - Throws: ``Malformed`` unless the notice is a dictionary with the account.
    package init(parsing bytes: [UInt8], _ hints: inout SwarmHintReader) throws(Malformed) {
        var reader = BencodeReader(bytes[...], maximumValueCount: .max)
        guard bytes.count <= Self.maximumByteCount, let fields = try? reader.rawFields(named: Self.fields), reader.rest.isEmpty,
            let account = fields[0].flatMap({ try? BencodeValue(parsing: $0, maximumValueCount: 1) })?.bytes.flatMap({ AccountID($0) })
        else { throw Malformed() }
        self.account = account
        hint = hints.hint(swarm: fields[2], snodes: fields[1])
    }
}
