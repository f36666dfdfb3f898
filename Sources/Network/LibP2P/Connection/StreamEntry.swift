import NIOCore

/// A stream of a connection, on its event loop.
final class StreamEntry {
    enum Phase {
        case negotiating(Negotiation)
        case open(PeerStream, Task<Void, Never>?)
    }

    struct Negotiation {
        var state: MultistreamNegotiation
        var received = ByteBuffer()
        let deadline: NIODeadline
        /// The caller that opens the stream; nil when the peer opens it.
        let opener: EventLoopPromise<PeerStream>?
    }

    var phase: Phase
    /// Whether it is in the handler's queue of streams that may send.
    var isReady = false

    init(_ negotiation: Negotiation) {
        phase = .negotiating(negotiation)
    }

    /// When the stream is reset unless it ended before, or negotiated its protocol.
    var deadline: NIODeadline {
        switch phase {
        case .negotiating(let negotiation): negotiation.deadline
        case .open(let stream, _): stream.deadline
        }
    }

    var queuedByteCount: Int { if case .open(let stream, _) = phase { stream.queuedByteCount } else { 0 } }

    func wakeReader() {
        if case .open(let stream, _) = phase { stream.wakeReader() }
    }
}
