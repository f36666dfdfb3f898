public import Core
public import NIOCore

extension IPAddress {
    /// nil for a socket without an IP address. The zone of a link-local address is left out.
    public init?(_ address: SocketAddress) {
        let address = address.withSockAddr { IPAddress(socketAddress: UnsafeRawBufferPointer(start: $0, count: $1)) }
        guard let address else { return nil }
        self = address
    }
}
