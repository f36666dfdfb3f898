import Foundation
import WakuCrypto
import Core

/// A storage server as listed in the map of the network.
package struct StorageServer: Hashable, Sendable {
    /// The server's CURVE key: X25519, 32 bytes.
    package let publicKey: [UInt8]
    /// IPv4 or IPv6.
    package let ip: String
    package let port: UInt16
    package let swarm: UInt64

    package init(publicKey: [UInt8], ip: String, port: UInt16, swarm: UInt64) {
        self.publicKey = publicKey
        self.ip = ip
        self.port = port
        self.swarm = swarm
    }

    /// nil unless the server can be connected to: it needs a key of 64 hex digits, a numeric address, a port and a swarm.
    init?(key: String, ip: String, port: Int64, swarm: UInt64) {
        guard !ip.isEmpty, ip != "0.0.0.0", IPAddress(ip) != nil, port > 0, let port = UInt16(exactly: port),
            swarm != SwarmRing.noSwarm, let key = bytes(hex: key), key.count == 32
        else { return nil }
        self.init(publicKey: key, ip: ip, port: port, swarm: swarm)
    }

    /// Addresses that no storage server of the internet has.
    private static let localRanges =
        AddressRange.loopback + AddressRange.privateNetworks
        + ["0.0.0.0/8", "100.64.0.0/10", "224.0.0.0/3", "::/128", "ff00::/8"].compactMap { AddressRange($0) }

    /// Whether the address is of this machine, of a private network, or of no single machine.
    var isLocal: Bool { IPAddress(ip).map { address in Self.localRanges.contains { $0.contains(address) } } ?? true }

    /// The endpoint for ZeroMQ.
    package var endpoint: String { ip.contains(":") ? "tcp://[\(ip)]:\(port)" : "tcp://\(ip):\(port)" }
}

/// The usable storage servers, from a file or from oxend.
///
/// Entries without an address (empty, `0.0.0.0`) or port (0), or of swarm 2^64−1, are left out. If several entries have the same key, the first
/// one counts.
package struct StorageServerList: Hashable, Sendable {
    package static let maximumByteCount = 32 << 20

    package let servers: [StorageServer]
    /// Number of entries that were left out.
    package let leftOutCount: Int

    /// The list is unusable as a whole.
    package struct Malformed: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// A file: JSON array of `{"pubkey_x25519": hex, "ip": "…", "port": N, "swarm_id": "16 hex digits"}`.
    ///
    /// - Throws: ``Malformed``, with the position.
    package init(parsingFile bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumByteCount, let value = try? JSONValue(parsing: bytes) else {
            throw Malformed(description: "not JSON")
        }
        guard let entries = value.array else { throw Malformed(description: "expected a JSON array") }
        try self.init(entries, ip: "ip", port: "port", isStrict: true) { value in
            value.text.flatMap { $0.utf8.count == 16 && $0.utf8.allSatisfy { hexNibble($0) != nil } ? UInt64($0, radix: 16) : nil }
        }
    }

    /// oxend's answer to `rpc.get_service_nodes`: `{"service_node_states":[{"pubkey_x25519", "public_ip", "storage_lmq_port", "swarm_id"}, …]}`.
    package init(parsingOxend bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumByteCount, let value = try? JSONValue(parsing: bytes) else {
            throw Malformed(description: "not JSON")
        }
        guard let entries = value.object?["service_node_states"]?.array else {
            throw Malformed(description: "service_node_states is missing or no array")
        }
        // One invalid entry must not invalidate the whole map.
        try self.init(entries, ip: "public_ip", port: "storage_lmq_port", isStrict: false) { $0.unsignedInteger }
    }

    private init(
        _ entries: [JSONValue], ip: StaticString, port: StaticString, isStrict: Bool, swarm: (JSONValue) -> UInt64?
    ) throws(Malformed) {
        var (servers, keys, leftOut): ([StorageServer], Set<[UInt8]>, Int) = ([], [], 0)
        for (index, entry) in entries.enumerated() {
            do throws(Malformed) {
                if let server = try Self.server(entry, ip: ip, port: port, swarm: swarm), keys.insert(server.publicKey).inserted {
                    servers.append(server)
                } else {
                    leftOut += 1
                }
            } catch {
                guard !isStrict else { throw Malformed(description: "entry \(index): \(error)") }
                leftOut += 1
            }
        }
        self.servers = servers
        leftOutCount = leftOut
    }

    /// nil for an entry without an address, port or swarm.
    private static func server(
        _ entry: JSONValue, ip ipName: StaticString, port portName: StaticString, swarm: (JSONValue) -> UInt64?
    ) throws(Malformed) -> StorageServer? {
        guard let fields = entry.object else { throw Malformed(description: "not an object") }
        func malformed(_ name: StaticString) -> Malformed { Malformed(description: "\(name) is missing or malformed") }
        guard let port = (fields[portName] ?? .number([UInt8(ascii: "0")])).unsignedInteger.flatMap({ UInt16(exactly: $0) }) else {
            throw malformed(portName)
        }
        guard let ip = (fields[ipName] ?? .string("")).text else { throw malformed(ipName) }
        guard let swarm = fields["swarm_id"].flatMap(swarm) else { throw malformed("swarm_id") }
        guard !ip.isEmpty, ip != "0.0.0.0", port != 0, swarm != SwarmRing.noSwarm else { return nil }
        guard let key = fields["pubkey_x25519"]?.text.flatMap({ bytes(hex: $0) }), key.count == 32 else {
            throw malformed("pubkey_x25519")
        }
        guard IPAddress(ip) != nil else { throw malformed(ipName) }
        return StorageServer(publicKey: key, ip: ip, port: port, swarm: swarm)
    }
}
