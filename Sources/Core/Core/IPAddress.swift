import Foundation

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address is the IPv4 address.
public struct IPAddress: Hashable, Sendable {
    /// 4 or 16 bytes.
    public let bytes: [UInt8]

    /// nil unless there are 4 or 16 bytes.
    public init?(bytes: [UInt8]) {
        switch bytes.count {
        case 4: self.bytes = bytes
        case 16:
            let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
            self.bytes = isMapped ? Array(bytes[12...]) : bytes
        default: return nil
        }
    }

    /// Parses the text forms that `inet_pton` knows.
    public init?(_ text: String) {
        var short = in_addr()
        var long = in6_addr()
        if inet_pton(AF_INET, text, &short) == 1 {
            self.init(bytes: withUnsafeBytes(of: short) { Array($0) })
        } else if inet_pton(AF_INET6, text, &long) == 1 {
            self.init(bytes: withUnsafeBytes(of: long) { Array($0) })
        } else {
            return nil
        }
    }

    /// The address in a `sockaddr_in` or `sockaddr_in6`; nil for other families and for fewer bytes than the family has.
    package init?(socketAddress: UnsafeRawBufferPointer) {
        guard socketAddress.count >= MemoryLayout<sockaddr>.size else { return nil }
        switch Int32(socketAddress.loadUnaligned(as: sockaddr.self).sa_family) {
        case AF_INET where socketAddress.count >= MemoryLayout<sockaddr_in>.size:
            self.init(bytes: withUnsafeBytes(of: socketAddress.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) })
        case AF_INET6 where socketAddress.count >= MemoryLayout<sockaddr_in6>.size:
            self.init(bytes: withUnsafeBytes(of: socketAddress.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) })
        default: return nil
        }
    }

    /// The text form of an address of 4 or 16 bytes.
    package static func text(of bytes: [UInt8]) -> String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The /24 of an IPv4 address or the /64 of an IPv6 address, the smallest block that is usually assigned to one party. Limits apply per block.
    public var block: AddressRange { AddressRange(around: self, prefixLength: bytes.count == 4 ? 24 : 64) }
}

/// A range of IP addresses in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`, or a single address.
public struct AddressRange: Hashable, Sendable, CustomStringConvertible {
    /// 127.0.0.0/8 and ::1.
    public static let loopback = ["127.0.0.0/8", "::1"].compactMap { AddressRange($0) }
    /// Private networks, RFC 1918 and RFC 4193, and link-local addresses.
    public static let privateNetworks =
        ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10"].compactMap { AddressRange($0) }

    /// The first address of the range, 4 or 16 bytes.
    public let bytes: [UInt8]
    /// In bits.
    public let prefixLength: Int

    /// nil unless the text is an IPv4 or IPv6 address, optionally followed by `/` and a prefix length in bits. The address may be any of the range.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(String(parts[0])) else { return nil }
        var prefixLength = address.bytes.count * 8
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(parts[1]), length <= prefixLength else {
                return nil
            }
            prefixLength = length
        }
        self.init(around: address, prefixLength: prefixLength)
    }

    /// As ``init(_:)``, but nil unless the text has the first address of the range: so that `10.0.0.1/8` is not taken for `10.0.0.1`.
    public init?(exactly text: String) {
        self.init(text)
        guard IPAddress(String(text.prefix { $0 != "/" }))?.bytes == bytes else { return nil }
    }

    /// - Parameters:
    ///   - address: an address in the range.
    ///   - prefixLength: in bits, at most the length of the address.
    init(around address: IPAddress, prefixLength: Int) {
        self.prefixLength = prefixLength
        bytes = address.bytes.enumerated().map { index, byte in
            let kept = min(max(prefixLength - 8 * index, 0), 8)
            return byte & ~UInt8(truncatingIfNeeded: 0xFF >> kept)
        }
    }

    /// Whether the address is in the network.
    public func contains(_ address: IPAddress) -> Bool {
        address.bytes.count == bytes.count && AddressRange(around: address, prefixLength: prefixLength) == self
    }

    /// CIDR notation: the first address of the range and the prefix length.
    public var description: String {
        IPAddress.text(of: bytes) + "/\(prefixLength)"
    }
}
