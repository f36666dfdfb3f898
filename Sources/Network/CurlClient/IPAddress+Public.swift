package import Core

extension IPAddress {
    /// Whether it is a global unicast address. False for the ranges of ``refused``, also when an IPv6 form carries such an IPv4 address:
    /// mapped (::ffff:0:0/96, see `IPAddress`), compatible (::/96), translated (64:ff9b::/96), 6to4 (2002::/16), Teredo (2001::/32).
    package var isPublic: Bool {
        guard !Self.refused.contains(where: { $0.contains(self) }) else { return false }
        guard bytes.count == 16 else { return true }
        // Only 2000::/3 is assigned to global unicast; 64:ff9b::/96 reaches the IPv4 address that it carries.
        if let carried { return carried.isPublic }
        return bytes[0] & 0xE0 == 0x20
    }

    /// The unit that limits count by: a single IPv4 address, also in its IPv6 forms, or the first 64 bits of an IPv6 address, which belong to one customer.
    package var site: IPAddress {
        if let carried { return carried }
        guard bytes.count == 16 else { return self }
        return IPAddress(bytes: Array(bytes[..<8]) + [UInt8](repeating: 0, count: 8)) ?? self
    }

    /// The IPv4 address that an IPv6 address carries, where a router or the kernel would use it.
    private var carried: IPAddress? {
        guard bytes.count == 16 else { return nil }
        if bytes[..<12].allSatisfy({ $0 == 0 }) { return IPAddress(bytes: Array(bytes[12...])) }
        if bytes[..<12] == [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0] { return IPAddress(bytes: Array(bytes[12...])) }
        if bytes[..<2] == [0x20, 0x02] { return IPAddress(bytes: Array(bytes[2..<6])) }
        return nil
    }

    /// Special-purpose ranges, from IANA's registries and RFC 6890.
    package static let refused: [AddressRange] = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
        "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20",
        "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    ].compactMap { AddressRange($0) }
}
