import Synchronization

/// Bytes that went over a connection, or all of a host's, as they were on the wire. Written by event loops, read by anybody.
final class Traffic: Sendable {
    private let received = Atomic(0)
    private let sent = Atomic(0)
    private let whole: Traffic?

    /// - Parameter whole: Of which this is a part.
    init(partOf whole: Traffic? = nil) {
        self.whole = whole
    }

    func addReceived(_ count: Int) {
        received.wrappingAdd(count, ordering: .relaxed)
        whole?.addReceived(count)
    }

    func addSent(_ count: Int) {
        sent.wrappingAdd(count, ordering: .relaxed)
        whole?.addSent(count)
    }

    var bytesReceived: Int { received.load(ordering: .relaxed) }
    var bytesSent: Int { sent.load(ordering: .relaxed) }
}
