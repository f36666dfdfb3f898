import Core
import Hummingbird
import NIOCore
import NIOSupport

/// The network of a client: the first 24 bits of an IPv4 address, or the first 64 bits of an IPv6 address, as they are given to one customer.
struct ClientNetwork: Hashable, Sendable {
    /// nil if the address is unknown.
    let block: AddressRange?

    init(_ address: IPAddress?) {
        block = address?.block
    }
}

/// The sender of an HTTP request.
struct HTTPClient: Hashable, Sendable {
    let network: ClientNetwork
    /// Unique among open connections.
    let connection: ObjectIdentifier
}

/// A request context with the connection.
struct SessionRequestContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The address of the connection; nil if it is unknown.
    let peer: IPAddress?
    private let connection: ObjectIdentifier

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        peer = source.channel.remoteAddress.flatMap { IPAddress($0) }
        connection = ObjectIdentifier(source.channel)
    }

    func client(in network: ClientNetwork) -> HTTPClient { HTTPClient(network: network, connection: connection) }
}
