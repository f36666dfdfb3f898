import Foundation
import HTTPService
import Hummingbird
package import Logging
import NIOCore

/// The REST API of an nwaku node over a ``LoopbackNetwork``: for development, tests and demonstrations without a network.
package struct LoopbackServer: Sendable {
    private let network: LoopbackNetwork
    private let host: String
    private let port: Int
    private let hostNames: [String]
    private let logger: Logger

    /// - Parameters:
    ///   - port: 0 for any that is free: ``run(bound:)`` tells which.
    ///   - hostNames: Names that requests may be for, beside loopback's and `host`. Others are answered 421: a page in a browser could have
    ///     its own name lead here (DNS rebinding), and publish, or take what is polled for.
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
    /// - Parameter bound: Told the port, once it is open.
    /// - Throws: ``LoopbackServerError`` when the address can't be listened on.
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

/// Why the loopback node can't serve. The message says what to do.
package struct LoopbackServerError: Error, Hashable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        case addressInUse
        /// Not this machine's, not allowed, or not an address.
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
            message = "can't listen on \(address): \(error)"
        }
    }
}
