import NIOSupport
import Foundation
import HTTPService
import Hummingbird
package import LoopbackRelay
package import Logging
import NIOCore

/// Serves the REST API of an nwaku node for a ``LoopbackNetwork``: for development, tests and demonstrations without a network.
package struct LoopbackServer: Sendable {
    private let network: LoopbackNetwork
    private let host: String
    private let port: Int
    private let hostNames: [String]
    private let logger: Logger

    /// - Parameters:
    ///   - port: 0 for a free port, which ``run(bound:)`` reports.
    ///   - hostNames: Accepted values of the `Host` header besides loopback names and `host`. Others are answered 421, so that a web page
    ///     cannot use its own name with this address (DNS rebinding) to publish or drain the cache.
    package init(
        network: LoopbackNetwork, host: String = "127.0.0.1", port: Int = 8645, hostNames: [String] = [], logger: Logger? = nil
    ) {
        self.network = network
        self.host = host
        self.port = port
        self.hostNames = hostNames
        self.logger = logger ?? Logger(label: "loopback") { _ in SwiftLogNoOpLogHandler() }
    }

    /// Serves until the task is cancelled or the process shuts down gracefully.
    ///
    /// - Parameter bound: Called with the port once it is open.
    /// - Throws: ``LoopbackServerError`` when the address cannot be listened on.
    package func run(bound: @escaping @Sendable (_ port: Int) async -> Void = { _ in }) async throws(LoopbackServerError) {
        let listener = HTTPListener(
            .hostname(host, port: port), limits: HTTPLimits(.loopbackRelay), hosts: HostPolicy(names: hostNames + [host]), logger: logger)
        do {
            try await listener.run(LoopbackResponder(network: network)) { channel in await bound(channel.localAddress?.port ?? port) }
        } catch {
            throw LoopbackServerError(error, address: "\(host):\(port)")
        }
    }
}

/// Why the loopback node cannot listen. The message includes the remedy.
package struct LoopbackServerError: Error, Hashable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        case addressInUse
        /// Not an address of this machine, not permitted, or not an address at all.
        case addressUnavailable
    }

    package let code: Code
    package let message: String

    package var description: String { message }

    init(_ error: any Error, address: String) {
        if let error = error as? IOError, error.errnoCode == EADDRINUSE {
            code = .addressInUse
            message = "\(address) is in use: stop what listens there, or choose another port"
        } else {
            code = .addressUnavailable
            message = "can't listen on \(address): \(ListenFailure.reason(error))"
        }
    }
}
