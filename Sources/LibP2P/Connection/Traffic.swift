import Synchronization

/// Bytes that went over a connection, as they were on the wire. Written by its event loop, read by anybody.
final class Traffic: Sendable {
    private let received = Atomic(0)
    private let sent = Atomic(0)

    func addReceived(_ count: Int) { received.wrappingAdd(count, ordering: .relaxed) }
    func addSent(_ count: Int) { sent.wrappingAdd(count, ordering: .relaxed) }

    var bytesReceived: Int { received.load(ordering: .relaxed) }
    var bytesSent: Int { sent.load(ordering: .relaxed) }
}
