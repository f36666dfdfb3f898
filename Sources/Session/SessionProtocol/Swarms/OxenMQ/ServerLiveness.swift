import Core

/// When a server gets a PING, and when it is given up. Without I/O.
struct ServerLiveness {
    enum Decision: Hashable, Sendable {
        case wait
        case ping
        /// The server does not answer.
        case end
    }

    private let startedAt: Instant
    private var heardAt: Instant
    private var pingedAt: Instant

    init(startedAt: Instant) {
        (self.startedAt, heardAt, pingedAt) = (startedAt, startedAt, startedAt)
    }

    /// Bytes of the server have arrived.
    mutating func heard(at now: Instant) {
        heardAt = now
    }

    /// - Parameters:
    ///   - isReady: Whether the server has answered HI.
    ///   - isPaused: Whether the connection is not read: then the server's silence means nothing. It still gets PINGs, because libzmq's heartbeats at
    ///     the server (oxenmq's: 15 s, 30 s) would end a connection that sends nothing.
    mutating func check(at now: Instant, isReady: Bool, isPaused: Bool, _ configuration: OxenMQClient.Configuration) -> Decision {
        guard isReady else { return now - startedAt < configuration.handshakeTimeout ? .wait : .end }
        let sign = isPaused ? pingedAt : max(heardAt, pingedAt)
        if isPaused { heardAt = now }
        guard now - heardAt < configuration.heartbeatTimeout else { return .end }
        guard now - sign >= configuration.heartbeatInterval else { return .wait }
        pingedAt = now
        return .ping
    }
}
