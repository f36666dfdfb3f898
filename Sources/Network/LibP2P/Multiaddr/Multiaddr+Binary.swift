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
        func code(_ code: Code) { Varint.append(code.rawValue, to: &bytes) }
        func counted(_ content: some Collection<UInt8>) {
            Varint.append(UInt64(content.count), to: &bytes)
            bytes.append(contentsOf: content)
        }
        switch self {
        case .ip4(let address):
            code(.ip4)
            bytes += address
        case .ip6(let address):
            code(.ip6)
            bytes += address
        case .tcp(let port):
            code(.tcp)
            bytes += [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)]
        case .dns(let name):
            code(.dns)
            counted(name.utf8)
        case .dns4(let name):
            code(.dns4)
            counted(name.utf8)
        case .dns6(let name):
            code(.dns6)
            counted(name.utf8)
        case .p2p(let peer):
            code(.p2p)
            counted(peer.bytes)
        }
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
