package import Hummingbird
import NIOCore

/// The context of a request, with the address that connected.
package struct PeerContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// Headers by which usual proxies say that they forward a request, besides `X-Forwarded-…`.
    private static let forwarding: Set = ["forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"]

    /// An IP address; nil if it is unknown.
    private let peer: String?

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        peer = source.channel.remoteAddress?.ipAddress
    }

    /// Whether the connection comes from this machine, and not from a proxy that says that it forwards requests.
    package func isLocal(_ request: Request) -> Bool {
        guard let peer, !request.headers.contains(where: { Self.isForwarding($0.name.canonicalName) }) else { return false }
        return peer == "::1" || peer.hasPrefix("127.") || peer.hasPrefix("::ffff:127.")
    }

    private static func isForwarding(_ name: String) -> Bool { forwarding.contains(name) || name.hasPrefix("x-forwarded-") }
}
