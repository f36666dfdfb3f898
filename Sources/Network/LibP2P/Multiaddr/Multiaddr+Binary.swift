import Core

/// The binary form: for each component its code as a varint and its value, which for names and peer ids is prefixed with its length as a varint.
extension Multiaddr {
    /// Parses the binary form.
    public init(parsing bytes: some Collection<UInt8>) throws(MultiaddrError) {
        guard bytes.count <= Self.byteLimit else { throw .malformed }
        var rest = Array(bytes)[...]
        var components: [Component] = []
        while !rest.isEmpty {
            components.append(try Component(takingFrom: &rest))
        }
        try self.init(components)
    }

    /// The binary form, as identify messages and node records contain it.
    public func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        for component in components { component.append(to: &bytes) }
        return bytes
    }
}

extension Multiaddr.Component {
    private enum Code: UInt64 {
        case ip4 = 4
        case tcp = 6
        case ip6 = 41
        case dns = 53
        case dns4 = 54
        case dns6 = 55
        case p2p = 421
    }

    fileprivate init(takingFrom rest: inout ArraySlice<UInt8>) throws(MultiaddrError) {
        let number = try Self.varint(&rest)
        guard let code = Code(rawValue: number) else { throw .unsupported("code \(number)") }
        switch code {
        case .ip4: self = .ip4(try Self.take(4, &rest))
        case .ip6: self = .ip6(try Self.take(16, &rest))
        case .tcp:
            let bytes = try Self.take(2, &rest)
            self = .tcp(UInt16(bytes[0]) << 8 | UInt16(bytes[1]))
        case .dns: self = .dns(try Self.name(&rest))
        case .dns4: self = .dns4(try Self.name(&rest))
        case .dns6: self = .dns6(try Self.name(&rest))
        case .p2p:
            guard let peer = try? PeerID(parsing: try Self.counted(&rest)) else { throw .malformed }
            self = .p2p(peer)
        }
    }

    fileprivate func append(to bytes: inout [UInt8]) {
        let (code, content, isCounted): (Code, [UInt8], Bool) =
            switch self {
            case .ip4(let address): (.ip4, address, false)
            case .ip6(let address): (.ip6, address, false)
            case .tcp(let port): (.tcp, [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)], false)
            case .dns(let name): (.dns, Array(name.utf8), true)
            case .dns4(let name): (.dns4, Array(name.utf8), true)
            case .dns6(let name): (.dns6, Array(name.utf8), true)
            case .p2p(let peer): (.p2p, peer.bytes, true)
            }
        Varint.append(code.rawValue, to: &bytes)
        if isCounted { Varint.append(UInt64(content.count), to: &bytes) }
        bytes += content
    }

    private static func varint(_ rest: inout ArraySlice<UInt8>) throws(MultiaddrError) -> UInt64 {
        do { return try Varint.take(from: &rest) } catch { throw .malformed }
    }

    private static func take(_ count: Int, _ rest: inout ArraySlice<UInt8>) throws(MultiaddrError) -> [UInt8] {
        guard rest.count >= count else { throw .malformed }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    private static func counted(_ rest: inout ArraySlice<UInt8>) throws(MultiaddrError) -> [UInt8] {
        let count = try varint(&rest)
        guard count <= UInt64(rest.count) else { throw .malformed }
        return try take(Int(count), &rest)
    }

    private static func name(_ rest: inout ArraySlice<UInt8>) throws(MultiaddrError) -> String {
        guard let name = String(validating: try counted(&rest), as: UTF8.self) else { throw .malformed }
        return name
    }
}
