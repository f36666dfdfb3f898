import Synchronization

/// Byte counters of a connection or of a whole host, as on the wire. Written on event loops, read from anywhere.
final class Traffic: Sendable {
    private let received = Atomic(0)
    private let sent = Atomic(0)
    private let total: Traffic?

    /// - Parameter total: Counters that all traffic is added to as well.
    init(partOf total: Traffic? = nil) {
        self.total = total
    }

    func addReceived(_ count: Int) {
        received.wrappingAdd(count, ordering: .relaxed)
        total?.addReceived(count)
    }

    func addSent(_ count: Int) {
        sent.wrappingAdd(count, ordering: .relaxed)
        total?.addSent(count)
    }

    var bytesReceived: Int { received.load(ordering: .relaxed) }
    var bytesSent: Int { sent.load(ordering: .relaxed) }
}
