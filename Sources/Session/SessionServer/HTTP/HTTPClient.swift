import Hummingbird
import NIOCore

/// The network of a client: the first 24 bits of an IPv4 address, or the first 64 bits of an IPv6 address, as they are given to one customer.
struct ClientNetwork: Hashable, Sendable {
    private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    /// 3 or 8 bytes; none if the address is unknown.
    let prefix: [UInt8]

    init(_ address: NIOCore.SocketAddress?) {
        switch address {
        case .v4(let address):
            // sockaddr_in: family(2) ‖ port(2) ‖ address(4)
            prefix = withUnsafeBytes(of: address.address) { Array($0[4..<7]) }
        case .v6(let address):
            // sockaddr_in6: family(2) ‖ port(2) ‖ flow(4) ‖ address(16)
            let bytes = withUnsafeBytes(of: address.address) { Array($0[8..<24]) }
            prefix = bytes.starts(with: Self.mappedPrefix) ? Array(bytes[12..<15]) : Array(bytes.prefix(8))
        case .unixDomainSocket, nil:
            prefix = []
        }
    }
}

/// The sender of an HTTP request.
struct HTTPClient: Hashable, Sendable {
    let network: ClientNetwork
    /// Unique among open connections.
    let connection: ObjectIdentifier

    init(network: ClientNetwork, connection: ObjectIdentifier) {
        (self.network, self.connection) = (network, connection)
    }

    init(_ channel: any Channel) {
        self.init(network: ClientNetwork(channel.remoteAddress), connection: ObjectIdentifier(channel))
    }
}

/// A request context with the client.
struct SessionRequestContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let client: HTTPClient

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        client = HTTPClient(source.channel)
    }
}
