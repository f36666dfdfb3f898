import NIOCore

/// What a connection knows of one of its streams, on its event loop.
final class StreamEntry {
    enum Phase {
        case negotiating(Negotiation)
        case open(PeerStream, Task<Void, Never>?)
    }

    struct Negotiation {
        var state: MultistreamNegotiation
        var received = ByteBuffer()
        let deadline: Scheduled<Void>?
        /// Whoever opens it; nil for the peer.
        let opener: EventLoopPromise<PeerStream>?
    }

    var phase: Phase
    /// Whether it is in the row of those that may send.
    var isReady = false

    init(_ negotiation: Negotiation) {
        phase = .negotiating(negotiation)
    }

    func wakeReader() {
        if case .open(let stream, _) = phase { stream.wakeReader() }
    }
}
