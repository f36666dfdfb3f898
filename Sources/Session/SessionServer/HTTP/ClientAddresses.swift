import Core
import NodeAPI

/// Finds the network that a request comes from: that of the connection or, if the connection is that of a trusted proxy, of the address in
/// `X-Forwarded-For`.
///
/// Anyone can send that header. So it counts only on the connections of proxies, and only as far as proxies wrote it: from its end to the first address
/// that is not a proxy's.
struct ClientAddresses: Sendable {
    /// Further addresses in a header are not read.
    private static let hopLimit = 16

    /// `--session-proxy`
    let proxies: [AddressRange]

    func isProxy(_ address: IPAddress) -> Bool { proxies.contains { $0.contains(address) } }

    /// - Parameters:
    ///   - peer: the address of the connection; nil if it is unknown.
    ///   - forwardedFor: the values of `X-Forwarded-For`, in order.
    func network(peer: IPAddress?, forwardedFor: [String]) -> SenderNetwork {
        guard var client = peer, isProxy(client) else { return SenderNetwork(peer) }
        let hops = forwardedFor.joined(separator: ",").split(separator: ",").reversed()
        for hop in hops.prefix(Self.hopLimit) {
            // Without a valid address the last proxy is the payer.
            guard let address = Self.address(hop) else { break }
            client = address
            if !isProxy(client) { break }
        }
        return SenderNetwork(client)
    }

    /// The address of an entry, which some proxies follow by a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
    private static func address(_ entry: Substring) -> IPAddress? {
        let text = entry.drop { $0 == " " }.prefix { $0 != " " }
        if text.first == "[" { return IPAddress(String(text.dropFirst().prefix { $0 != "]" })) }
        let isWithPort = text.contains(".") && text.count { $0 == ":" } == 1
        return IPAddress(String(isWithPort ? text.prefix { $0 != ":" } : text))
    }
}

/// Notices a reverse proxy that `--session-proxy` does not name: all of its clients are one payer. Anyone can send `X-Forwarded-For`, so half of a
/// minute's requests must have it.
struct ProxyWatch: Sendable {
    private var requestCount = 0
    private var forwardedCount = 0
    private(set) var isUnnamed = false
    private var wasUnnamed = false

    /// - Parameter isForwarded: whether it has `X-Forwarded-For` and its connection is not that of a trusted proxy.
    mutating func request(isForwarded: Bool) {
        requestCount += 1
        if isForwarded { forwardedCount += 1 }
    }

    /// Called once a minute. A minute without requests changes nothing.
    ///
    /// - Returns: whether a proxy was noticed for the first time.
    mutating func endMinute() -> Bool {
        guard requestCount > 0 else { return false }
        isUnnamed = forwardedCount * 2 >= requestCount
        (requestCount, forwardedCount) = (0, 0)
        defer { wasUnnamed = wasUnnamed || isUnnamed }
        return isUnnamed && !wasUnnamed
    }

    var finding: Finding? {
        guard isUnnamed else { return nil }
        return Finding(
            "session proxy", .warn, "requests come through a reverse proxy that is not trusted: all its clients share one client's limits",
            remedy: "name the proxy's address in --session-proxy")
    }
}
