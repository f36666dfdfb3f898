import Glibc
package import NIOCore

/// A range of IP addresses in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`, or a single address.
public struct AddressRange: Hashable, Sendable, CustomStringConvertible {
    /// 127.0.0.0/8 and ::1.
    public static let loopback = ["127.0.0.0/8", "::1"].compactMap { AddressRange($0) }
    /// Private networks, RFC 1918 and RFC 4193, and link-local addresses.
    public static let privateNetworks =
        ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10"].compactMap { AddressRange($0) }

    /// 4 or 16 bytes; the bits after the prefix are 0.
    private let bytes: [UInt8]
    private let prefixLength: Int

    /// nil unless the text is an IPv4 or IPv6 address, optionally followed by `/` and a prefix length in bits.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(String(parts[0])) else { return nil }
        var prefixLength = address.bytes.count * 8
        if parts.count == 2 {
            guard let length = Int(parts[1]), (0...prefixLength).contains(length) else { return nil }
            prefixLength = length
        }
        self.init(around: address, prefixLength: prefixLength)
    }

    /// - Parameters:
    ///   - address: An address in the range.
    ///   - prefixLength: In bits, at most the length of the address.
    init(around address: IPAddress, prefixLength: Int) {
        self.prefixLength = prefixLength
        bytes = address.bytes.enumerated().map { index, byte in
            let kept = min(max(prefixLength - 8 * index, 0), 8)
            return byte & ~UInt8(truncatingIfNeeded: 0xFF >> kept)
        }
    }

    package func contains(_ address: IPAddress) -> Bool {
        address.bytes.count == bytes.count && AddressRange(around: address, prefixLength: prefixLength) == self
    }

    /// CIDR notation: the first address of the range and the prefix length.
    public var description: String {
        let address = (try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: 0))?.ipAddress ?? ""
        return "\(address)/\(prefixLength)"
    }
}

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address is treated as IPv4.
package struct IPAddress: Hashable, Sendable {
    /// 4 or 16.
    let bytes: [UInt8]

    package init?(_ text: String) {
        if let bytes = Self.bytes(of: text, AF_INET, 4) {
            self.bytes = bytes
        } else if let bytes = Self.bytes(of: text, AF_INET6, 16) {
            let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
            self.bytes = isMapped ? Array(bytes.suffix(4)) : bytes
        } else {
            return nil
        }
    }

    /// nil for a socket without an IP address.
    package init?(_ address: SocketAddress) {
        // Without the zone of a link-local address.
        guard let text = address.ipAddress?.prefix(while: { $0 != "%" }) else { return nil }
        self.init(String(text))
    }

    private static func bytes(of text: String, _ family: Int32, _ count: Int) -> [UInt8]? {
        var isAddress = false
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            isAddress = inet_pton(family, text, buffer.baseAddress) == 1
            initialized = isAddress ? count : 0
        }
        return isAddress ? bytes : nil
    }

    /// The /24 of an IPv4 address or the /64 of an IPv6 address, the smallest block that is usually assigned to one party. Limits apply per block.
    package var block: AddressRange { AddressRange(around: self, prefixLength: bytes.count == 4 ? 24 : 64) }
}
