package import Core
import DequeModule

/// The bounded outbound queue of one peer. Items are combined into frames, as many as fit in each.
///
/// By priority, the highest first:
///
///     control     subscriptions, grafts, prunes     never dropped: on overflow the peer is disconnected
///     idontwant                                     dropped when it would be late
///     messages    forwarded messages                the newest are dropped
///     replies     requested messages (IWANT)        dropped first
///     gossip      IHAVE, IWANT                      dropped first
public struct OutboundQueue: Sendable {
    /// The limits of a queue.
    public struct Limits: Hashable, Sendable {
        /// The maximum number of subscriptions, grafts and prunes. Beyond it the peer is to be disconnected.
        public var controlCount = 4096
        /// The maximum size of messages and replies together, in bytes.
        public var messageByteCount = 4 << 20
        /// The maximum number of message ids in IHAVE and IWANT, of 32 bytes each.
        public var gossipIDCount = 20_000
        /// The size in bytes up to which frames are filled. A larger message is sent in a frame of its own, which is returned in pieces of this size.
        public var frameByteCount = 64 << 10

        /// The defaults bound a queue to about 5 MB.
        public init() {}
    }

    /// A message larger than a frame is copied piece by piece: until then, all queues share it.
    private struct Begun {
        let message: GossipMessage
        /// How much of the message's field was returned.
        var sentByteCount = 0
    }

    private let limits: Limits
    private var begun: Begun?
    private var control: [Outgoing] = []
    private var idontwant: [MessageID] = []
    private var messages = Deque<GossipMessage>()
    private var replies = Deque<GossipMessage>()
    private var gossip = Deque<Outgoing>()
    private var messageByteCount = 0
    private var replyByteCount = 0
    private var gossipIDCount = 0

    /// - Parameter limits: When to drop items and to disconnect the peer.
    public init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Whether there is nothing to send.
    public var isEmpty: Bool {
        begun == nil && control.isEmpty && idontwant.isEmpty && messages.isEmpty && replies.isEmpty && gossip.isEmpty
    }

    /// The approximate size of the queue in bytes. A message counts until its last byte was returned.
    public var byteCount: Int { messageByteCount + replyByteCount + (begun?.message.byteCount ?? 0) + itemByteCount }

    /// The part of ``byteCount`` that is not messages, which queues share.
    package var itemByteCount: Int { 34 * (gossipIDCount + idontwant.count) + 64 * control.count }

    /// Appends an item. When there is no room, drops this item or ones of lower priority, or reports an overflow.
    public mutating func append(_ item: Outgoing) -> Enqueued {
        switch item {
        case .subscription, .graft, .prune:
            guard control.count < limits.controlCount else { return .overflow }
            control.append(item)
        case .idontwant(let ids):
            // Behind this many ids, it would arrive too late.
            guard idontwant.count + ids.count <= Self.itemsPerFrame else { return .dropped }
            idontwant += ids
        case .message(let message):
            var isDropping = false
            if messageByteCount + replyByteCount + message.byteCount > limits.messageByteCount, !replies.isEmpty || !gossip.isEmpty {
                dropRepliesAndGossip()
                isDropping = true
            }
            guard messages.isEmpty || messageByteCount + message.byteCount <= limits.messageByteCount else { return .dropped }
            messages.append(message)
            messageByteCount += message.byteCount
            return isDropping ? .dropped : .kept
        case .reply(let message):
            guard messageByteCount + replyByteCount + message.byteCount <= limits.messageByteCount else { return .dropped }
            replies.append(message)
            replyByteCount += message.byteCount
        case .ihave(_, let ids), .iwant(let ids):
            guard gossipIDCount + ids.count <= limits.gossipIDCount else { return .dropped }
            gossip.append(item)
            gossipIDCount += ids.count
        }
        return .kept
    }

    private mutating func dropRepliesAndGossip() {
        replies.removeAll()
        replyByteCount = 0
        gossip.removeAll()
        gossipIDCount = 0
    }

    /// Drops what the peer can do without, to free memory: replies, gossip, and messages. Control messages stay, and so do a message whose frame was begun
    /// and messages that this node published within the last ten seconds.
    package mutating func shorten(at now: Instant) {
        dropRepliesAndGossip()
        messages.removeAll { $0.keptUntil.map { $0 <= now } ?? true }
        messageByteCount = messages.reduce(0) { $0 + $1.byteCount }
    }

    /// Removes and encodes the next frame, `length(varint) ‖ RPC`; nil when the queue is empty. A frame that is larger than
    /// ``Limits/frameByteCount`` is returned in pieces, one at each call.
    ///
    /// All control messages of a frame are in one field: some implementations read only the last one.
    public mutating func nextFrame() -> [UInt8]? {
        let limit = limits.frameByteCount
        if begun == nil, self.control.isEmpty, idontwant.isEmpty, let large = popMessage(if: { $0.byteCount > limit }) {
            begun = Begun(message: large)
        }
        if let piece = nextPiece() { return piece }
        guard !isEmpty else { return nil }
        var frame = ProtobufWriter(capacity: min(byteCount, limit) + 256)
        var control = ProtobufWriter()
        for item in self.control.prefix(Self.itemsPerFrame) {
            if case .subscription(let topic, let isOn) = item {
                frame.field(1) { (option: inout ProtobufWriter) in
                    option.field(1, isOn)
                    option.field(2, topic)
                }
            } else {
                control.append(item)
            }
        }
        self.control.removeFirst(min(Self.itemsPerFrame, self.control.count))
        if !idontwant.isEmpty {
            control.append(.idontwant(Array(idontwant.prefix(Self.itemsPerFrame))))
            idontwant.removeFirst(min(Self.itemsPerFrame, idontwant.count))
        }
        func hasRoom(for byteCount: Int) -> Bool {
            let used = frame.bytes.count + control.bytes.count
            return used == 0 || used + byteCount <= limit
        }
        while let message = popMessage(if: { hasRoom(for: $0.byteCount) }) { frame.append(message.field) }
        while messages.isEmpty, replies.isEmpty, let item = gossip.first, hasRoom(for: 34 * item.idCount + 256) {
            _ = gossip.popFirst()
            gossipIDCount -= item.idCount
            control.append(item)
        }
        if !control.bytes.isEmpty { frame.field(3, control.bytes) }
        return LengthFraming.framed(frame.bytes)
    }

    /// Removes the next message or, if there is none, the next reply.
    private mutating func popMessage(if condition: (GossipMessage) -> Bool) -> GossipMessage? {
        guard let next = messages.first ?? replies.first, condition(next) else { return nil }
        if messages.popFirst() != nil {
            messageByteCount -= next.byteCount
        } else {
            _ = replies.popFirst()
            replyByteCount -= next.byteCount
        }
        return next
    }

    /// The next piece of the message whose frame was begun.
    private mutating func nextPiece() -> [UInt8]? {
        guard let (message, sentByteCount) = begun.map({ ($0.message, $0.sentByteCount) }) else { return nil }
        let part = message.field.dropFirst(sentByteCount).prefix(max(1, limits.frameByteCount))
        begun?.sentByteCount += part.count
        if part.endIndex == message.field.endIndex { begun = nil }
        guard sentByteCount == 0 else { return Array(part) }
        var piece: [UInt8] = []
        piece.reserveCapacity(part.count + 5)
        Varint.append(UInt64(message.field.count), to: &piece)
        piece += part
        return piece
    }

    static let itemsPerFrame = 1000
}

extension Outgoing {
    fileprivate var idCount: Int {
        switch self {
        case .ihave(_, let ids), .iwant(let ids), .idontwant(let ids): ids.count
        default: 0
        }
    }
}

extension ProtobufWriter {
    /// Appends a field of the RPC's control message.
    fileprivate mutating func append(_ item: Outgoing) {
        switch item {
        case .ihave(let topic, let ids):
            field(1) { (ihave: inout ProtobufWriter) in
                ihave.field(1, topic)
                ihave.appendIDs(2, ids)
            }
        case .iwant(let ids): field(2) { (iwant: inout ProtobufWriter) in iwant.appendIDs(1, ids) }
        case .graft(let topic): field(3) { (graft: inout ProtobufWriter) in graft.field(1, topic) }
        case .prune(let topic, let backoff):
            field(4) { (prune: inout ProtobufWriter) in
                prune.field(1, topic)
                prune.field(3, UInt64(max(0, backoff.components.seconds)))
            }
        case .idontwant(let ids): field(5) { (idontwant: inout ProtobufWriter) in idontwant.appendIDs(1, ids) }
        case .subscription, .message, .reply: break
        }
    }

    private mutating func appendIDs(_ number: Int, _ ids: [MessageID]) {
        for id in ids { id.withBytes { field(number, $0) } }
    }
}
