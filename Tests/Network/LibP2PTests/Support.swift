import NIOCore
import Testing

@testable import LibP2P

/// A host that listens on loopback.
struct ListeningHost {
    let host: Host
    let address: Multiaddr

    init(_ configuration: HostConfiguration = HostConfiguration(), key: NodeKey = .generate()) async throws {
        host = Host(key: key, configuration: configuration)
        address = try await host.listen(on: Multiaddr("/ip4/127.0.0.1/tcp/0"))
    }
}

/// Runs `body` with two hosts, the first connected to the second, and closes both.
func withTwoHosts(
    _ configuration: HostConfiguration = HostConfiguration(), _ body: (_ dialer: Host, _ listener: Host) async throws -> Void
) async throws {
    let listener = try await ListeningHost(configuration)
    let dialer = Host(key: .generate(.ed25519), configuration: configuration)
    do {
        try await dialer.connect(to: listener.address)
        try await body(dialer, listener.host)
    } catch {
        await dialer.close()
        await listener.host.close()
        throw error
    }
    await dialer.close()
    await listener.host.close()
}

extension AsyncStream where Element: Sendable {
    /// The first non-nil result of `pick`.
    func first<R>(as pick: (Element) -> R?) async -> R? {
        for await element in self {
            if let result = pick(element) { return result }
        }
        return nil
    }
}
