import Core
import Hummingbird
import NIOCore
import NIOSupport

/// The network that limits apply to: the first 24 bits of an IPv4 address, or the first 64 bits of an IPv6 address, within which one customer may have
/// many addresses.
struct SenderNetwork: Hashable, Sendable {
    /// nil if the address is unknown.
    let block: AddressRange?

    init(_ address: IPAddress?) {
        block = address?.block
    }
}

/// The sender of an HTTP request.
struct RequestSender: Hashable, Sendable {
    let network: SenderNetwork
    /// Unique among open connections.
    let connection: ObjectIdentifier
}

/// Hummingbird's request context, with the connection of the request.
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

    func sender(in network: SenderNetwork) -> RequestSender { RequestSender(network: network, connection: connection) }
}
