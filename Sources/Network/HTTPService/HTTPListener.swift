package import Hummingbird
import HummingbirdCore
package import Logging
package import NIOCore
import NIOSupport

/// An HTTP/1.1 server, over TLS if it has a certificate, that slow, idle or numerous clients cannot exhaust. All HTTP listeners of the program use it.
package struct HTTPListener: Sendable {
    /// The maximum size of a request's headers, in bytes.
    private static let headerLimit = 32 << 10

    private let address: BindAddress
    private let limits: HTTPLimits
    private let hosts: HostPolicy?
    private let exemptPaths: Set<String>
    private let tls: TLSIdentity?
    private let logger: Logger

    /// - Parameters:
    ///   - hosts: The accepted values of the `Host` header; nil accepts any, for listeners that browsers cannot reach.
    ///   - exemptPaths: Paths answered for any `Host`, as they are sent.
    ///   - tls: The certificate of an https listener; nil for plain HTTP.
    ///   - logger: Logs when connections cannot be accepted.
    package init(
        _ address: BindAddress, limits: HTTPLimits, hosts: HostPolicy?, exemptPaths: Set<String> = [], tls: TLSIdentity? = nil,
        logger: Logger
    ) {
        self.address = address
        self.limits = limits
        self.hosts = hosts
        self.exemptPaths = exemptPaths
        self.tls = tls
        self.logger = logger
    }

    /// Serves until the task is cancelled or the process shuts down gracefully.
    ///
    /// - Parameter bound: Called with the listening channel once it is open.
    /// - Throws: NIO's error for an address that cannot be listened on.
    package func run<Responder: HTTPResponder>(
        _ responder: Responder, bound: @escaping @Sendable (any Channel) async -> Void
    ) async throws where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
        let register = ConnectionRegister(limit: limits.connections)
        let quiet = Logger(label: "http") { _ in SwiftLogNoOpLogHandler() }
        let application = Application(
            responder: CloseAnnouncing(base: HostChecking(base: responder, hosts: hosts, exemptPaths: exemptPaths)),
            server: HTTPServerBuilder { [limits, tls] responder in
                let http = HTTP1Channel(
                    responder: { request, writer, channel in try await responder(request.continuing(on: channel), writer, channel) },
                    configuration: HTTP1Channel.Configuration(
                        additionalChannelHandlers: [ConnectionHandler(limits: limits, register: register)],
                        httpDecoderConfiguration: .init(maxHeaderFieldSize: Self.headerLimit, maxHeaderListSize: Self.headerLimit)))
                guard let tls else { return http }
                return TLSChannel(base: http, identity: tls)
            },
            configuration: ApplicationConfiguration(
                address: address,
                availableConnectionsDelegate: MaximumAvailableConnections(limits.connections + limits.reserve, logger: quiet)),
            onServerRunning: { [logger] channel in
                try? await channel.eventLoop.submit {
                    let handler = AcceptPauseHandler(
                        pause: .milliseconds(250), message: "failed to accept HTTP connections; pausing", logger: logger)
                    try channel.pipeline.syncOperations.addHandler(handler, position: .first)
                }.get()
                await bound(channel)
            }, logger: quiet)
        try await application.runUntilCancelled(logger: quiet)
    }

    /// Listens on an address, and closes it at once.
    ///
    /// - Returns: why it cannot be listened on, as ``ListenFailure/reason(_:)``; nil if it can.
    package static func obstacle(host: String, port: Int) async -> String? {
        let quiet = Logger(label: "http") { _ in SwiftLogNoOpLogHandler() }
        let listener = HTTPListener(.hostname(host, port: port), limits: HTTPLimits(.status), hosts: nil, logger: quiet)
        let (opened, isOpen) = AsyncStream<Void>.makeStream()
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await listener.run(Routes().responder) { _ in isOpen.finish() } }
                group.addTask { for await _ in opened {} }
                try await group.next()
                group.cancelAll()
            }
            return nil
        } catch {
            return ListenFailure.reason(error)
        }
    }
}
