import Foundation

/// An IPv4 or IPv6 address. IPv6 forms that carry an IPv4 address are seen through: see ``isPublic``.
package struct IPAddress: Hashable, Sendable {
    /// 4 or 16 bytes.
    package let bytes: [UInt8]

    package init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    /// Parses the text forms that `inet_pton` knows.
    package init?(_ text: String) {
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            bytes = withUnsafeBytes(of: &v4) { Array($0) }
        } else if inet_pton(AF_INET6, text, &v6) == 1 {
            bytes = withUnsafeBytes(of: &v6) { Array($0) }
        } else {
            return nil
        }
    }

    /// The address in a `sockaddr_in` or `sockaddr_in6`; nil for other families and for fewer bytes than the family has.
    init?(socketAddress: UnsafeRawBufferPointer) {
        guard socketAddress.count >= MemoryLayout<sockaddr>.size else { return nil }
        switch Int32(socketAddress.loadUnaligned(as: sockaddr.self).sa_family) {
        case AF_INET where socketAddress.count >= MemoryLayout<sockaddr_in>.size:
            bytes = withUnsafeBytes(of: socketAddress.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
        case AF_INET6 where socketAddress.count >= MemoryLayout<sockaddr_in6>.size:
            bytes = withUnsafeBytes(of: socketAddress.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
        default: return nil
        }
    }

    /// Whether it is a global unicast address. False for the ranges of ``refused``, also when an IPv6 form carries such an IPv4 address: mapped
    /// (::ffff:0:0/96), compatible (::/96), translated (64:ff9b::/96), 6to4 (2002::/16), Teredo (2001::/32).
    package var isPublic: Bool {
        guard !Self.refused.contains(where: { $0.contains(self) }) else { return false }
        guard bytes.count == 16 else { return true }
        // Only 2000::/3 is assigned to global unicast; 64:ff9b::/96 and mapped addresses reach the IPv4 address that they carry.
        if let carried { return carried.isPublic }
        return bytes[0] & 0xE0 == 0x20
    }

    /// The IPv4 address that an IPv6 address carries, where a router or the kernel would use it.
    private var carried: IPAddress? {
        guard bytes.count == 16 else { return nil }
        let zeros = bytes[..<10].allSatisfy { $0 == 0 }
        if zeros, bytes[10] == 0xFF && bytes[11] == 0xFF || bytes[10] == 0 && bytes[11] == 0 {
            return IPAddress(bytes: Array(bytes[12...]))
        }
        if bytes[..<12] == [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0] { return IPAddress(bytes: Array(bytes[12...])) }
        if bytes[..<2] == [0x20, 0x02] { return IPAddress(bytes: Array(bytes[2..<6])) }
        return nil
    }

    /// Special-purpose ranges, from IANA's registries and RFC 6890.
    package static let refused: [IPNetwork] = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
        "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20",
        "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    ].compactMap { IPNetwork($0) }
}

/// A range of addresses: `192.168.0.0/16`, `fd00::/8`, or a single address.
package struct IPNetwork: Hashable, Sendable {
    package let address: IPAddress
    package let prefix: Int

    /// nil unless the text is an address with an optional prefix length, and the bits behind the prefix are zero.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let address = IPAddress(String(parts[0])) else { return nil }
        let width = address.bytes.count * 8
        var prefix = width
        if parts.count == 2 {
            guard (1...3).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = Int(parts[1]), number <= width
            else { return nil }
            prefix = number
        }
        self.address = address
        self.prefix = prefix
        guard (prefix..<width).allSatisfy({ address.bytes[$0 / 8] & (0x80 >> UInt8($0 % 8)) == 0 }) else { return nil }
    }

    /// An IPv4 network contains mapped IPv6 addresses (::ffff:0:0/96) too.
    package func contains(_ other: IPAddress) -> Bool {
        var bytes = other.bytes
        if bytes.count == 16, address.bytes.count == 4, bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            bytes = Array(bytes[12...])
        }
        guard bytes.count == address.bytes.count else { return false }
        return (0..<prefix).allSatisfy { bit in (bytes[bit / 8] ^ address.bytes[bit / 8]) & (0x80 >> UInt8(bit % 8)) == 0 }
    }
}
