public import Core

/// The contents of one frame, `rpc.proto` of the gossipsub specification:
///
///     RPC      { 1 subscriptions* { 1 subscribe(bool) · 2 topic }
///              · 2 messages* { 1 from · 2 data · 3 sequence number · 4 topic · 5 signature · 6 key }
///              · 3 control { 1 ihave* { 1 topic · 2 ids* } · 2 iwant* { 1 ids* } · 3 graft* { 1 topic }
///                          · 4 prune* { 1 topic · 2 peers* · 3 backoff in seconds } · 5 idontwant* { 1 ids* } } }
///
/// Unknown fields are skipped, as are the peers offered in a prune (peer exchange) and message ids that are not 32 bytes long, which no message
/// of Waku has. The messages' data is not copied out of the frame.
public struct GossipRPC: Sendable {
    /// The largest frame in bytes: a message of 1 MiB and its overhead.
    public static let maximumByteCount = 1 << 20 + 64 << 10
    static let maximumTopicByteCount = 256
    static let maximumMessageCount = 4096
    static let maximumSubscriptionCount = 1024
    /// The maximum number of grafts, and of prunes.
    static let maximumTopicCount = 1024
    /// The maximum number of message ids per kind of control message.
    static let maximumIDCount = 5000
    /// The maximum length of data without ``Publication/id``.
    static let shortDataByteCount = 4096

    struct Subscription: Hashable {
        let topic: String
        let isOn: Bool
    }

    struct Publication: Hashable {
        let topic: String
        /// The range of the data in the frame.
        let data: Range<Int>
        /// The message id of long data, computed while parsing, so that it is not computed while the router is locked. nil for short data: a frame may
        /// have thousands of messages on topics to which this node is not subscribed.
        let id: MessageID?
        /// Whether the message names its author or is signed.
        let isAuthored: Bool
    }

    struct Prune: Hashable {
        let topic: String
        /// nil when the prune specifies none.
        let backoff: Duration?
    }

    struct Announcement: Hashable {
        let topic: String
        var ids: [MessageID]
    }

    let frame: [UInt8]
    private(set) var subscriptions: [Subscription] = []
    private(set) var publications: [Publication] = []
    private(set) var ihave: [Announcement] = []
    private(set) var iwant: [MessageID] = []
    private(set) var graft: [String] = []
    private(set) var prune: [Prune] = []
    private(set) var idontwant: [MessageID] = []

    /// Whether there is nothing in the frame for this node.
    var isEmpty: Bool {
        subscriptions.isEmpty && publications.isEmpty && ihave.isEmpty && iwant.isEmpty && graft.isEmpty && prune.isEmpty
            && idontwant.isEmpty
    }

    /// The number of published messages in the frame.
    public var messageCount: Int { publications.count }

    /// - Parameter frame: The protobuf, without the length prefix of the stream.
    /// - Throws: `ProtobufError`; `tooLong` for a frame above ``maximumByteCount``, `tooMany` for more topics or messages than a frame may have.
    public init(parsing frame: [UInt8]) throws(ProtobufError) {
        guard frame.count <= Self.maximumByteCount else { throw .tooLong }
        self.frame = frame
        var reader = ProtobufReader(frame)
        while let field = try reader.next() {
            switch field.number {
            case 1: try readSubscription(field.nested(in: reader))
            case 2: try readPublication(field.nested(in: reader))
            case 3: try readControl(field.nested(in: reader))
            default: break
            }
        }
    }

    private mutating func readSubscription(_ nested: ProtobufReader) throws(ProtobufError) {
        guard subscriptions.count < Self.maximumSubscriptionCount else { throw .tooMany }
        var reader = nested
        var isOn = false
        var topic: String?
        while let field = try reader.next() {
            switch field.number {
            case 1: isOn = try field.varint() != 0
            case 2: topic = try field.string(of: reader, limit: Self.maximumTopicByteCount)
            default: break
            }
        }
        guard let topic else { throw .malformed }
        subscriptions.append(Subscription(topic: topic, isOn: isOn))
    }

    private mutating func readPublication(_ nested: ProtobufReader) throws(ProtobufError) {
        guard publications.count < Self.maximumMessageCount else { throw .tooMany }
        var reader = nested
        var topic: String?
        var data = 0..<0
        var isAuthored = false
        while let field = try reader.next() {
            switch field.number {
            case 2: data = try field.content()
            case 4: topic = try field.string(of: reader, limit: Self.maximumTopicByteCount)
            case 1, 3, 5, 6: isAuthored = true
            default: break
            }
        }
        guard let topic else { throw .malformed }
        let id = data.count > Self.shortDataByteCount ? MessageID(of: frame[data]) : nil
        publications.append(Publication(topic: topic, data: data, id: id, isAuthored: isAuthored))
    }

    private mutating func readControl(_ nested: ProtobufReader) throws(ProtobufError) {
        var reader = nested
        while let field = try reader.next() {
            switch field.number {
            case 1: try readAnnouncement(field.nested(in: reader))
            case 2: try Self.readIDs(field.nested(in: reader), number: 1, into: &iwant)
            case 3:
                guard graft.count < Self.maximumTopicCount else { throw .tooMany }
                graft.append(try Self.readTopic(field.nested(in: reader)).topic)
            case 4:
                guard prune.count < Self.maximumTopicCount else { throw .tooMany }
                prune.append(try Self.readTopic(field.nested(in: reader)))
            case 5: try Self.readIDs(field.nested(in: reader), number: 1, into: &idontwant)
            default: break
            }
        }
    }

    private mutating func readAnnouncement(_ nested: ProtobufReader) throws(ProtobufError) {
        guard ihave.count < Self.maximumTopicCount else { throw .tooMany }
        var reader = nested
        var topic = ""
        while topic.isEmpty, let field = try reader.next() {
            if field.number == 1 { topic = try field.string(of: reader, limit: Self.maximumTopicByteCount) }
        }
        var ids: [MessageID] = []
        try Self.readIDs(nested, number: 2, into: &ids)
        ihave.append(Announcement(topic: topic, ids: ids))
    }

    /// Reads a graft or prune; only a prune has a backoff.
    private static func readTopic(_ nested: ProtobufReader) throws(ProtobufError) -> Prune {
        var reader = nested
        var topic: String?
        var backoff: Duration?
        while let field = try reader.next() {
            switch field.number {
            case 1: topic = try field.string(of: reader, limit: maximumTopicByteCount)
            case 3: backoff = .seconds(Int64(min(try field.varint(), 1 << 32)))
            default: break
            }
        }
        guard let topic else { throw .malformed }
        return Prune(topic: topic, backoff: backoff)
    }

    /// Ids beyond the limit are skipped rather than refused: honest peers may announce more.
    private static func readIDs(_ nested: ProtobufReader, number: Int, into ids: inout [MessageID]) throws(ProtobufError) {
        var reader = nested
        while let field = try reader.next() {
            guard field.number == number, ids.count < maximumIDCount else { continue }
            if let id = MessageID(reader.bytes[try field.content()]) { ids.append(id) }
        }
    }
}
