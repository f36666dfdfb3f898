import Core

/// The JSON array of messages that a poll returns, parsed in one pass. ``MessageJSON`` describes an element.
///
/// Elements that are not messages are skipped. Messages on unwanted topics are not decoded.
public struct MessageList: Sendable {
    /// The decoded messages, in the order of the array.
    public private(set) var messages: [WakuMessage] = []
    /// The number of messages on unwanted topics, which were not decoded.
    public private(set) var unwantedCount = 0
    /// The number of all elements, unreadable ones included.
    public private(set) var elementCount = 0

    /// nil when the text is neither an array nor null.
    ///
    /// - Parameters:
    ///   - json: UTF-8.
    ///   - wants: Whether to decode messages on the topic of a ``ContentTopic/listeningTag``; nil decodes all messages.
    public init?(json: [UInt8], wants: ((TopicTag) -> Bool)? = nil) {
        let isRead = json.withUnsafeBufferPointer { text in
            var scan = JSONScan(text)
            return read(&scan, wants) && scan.peek() == nil
        }
        guard isRead else { return nil }
    }

    private mutating func read(_ scan: inout JSONScan, _ wants: ((TopicTag) -> Bool)?) -> Bool {
        // go-waku answers null when there are no messages.
        guard scan.peek() == UInt8(ascii: "[") else { return scan.takeNull() }
        return scan.array { scan in
            elementCount += 1
            guard scan.peek() == UInt8(ascii: "{") else { return scan.skipValue() }
            guard let fields = MessageFields(&scan) else { return false }
            add(fields, from: scan, wants: wants)
            return true
        }
    }

    private mutating func add(_ fields: MessageFields, from scan: JSONScan, wants: ((TopicTag) -> Bool)?) {
        if let wants, let topic = fields.contentTopic {
            guard let tag = fields.listeningTag(topic, scan), wants(tag) else {
                unwantedCount += 1
                return
            }
        }
        if let message = fields.message(scan) { messages.append(message) }
    }
}

/// The positions of one message's fields in JSON text.
struct MessageFields {
    var payload: JSONScan.StringRange?
    var contentTopic: JSONScan.StringRange?
    var meta: JSONScan.StringRange?
    var version: Range<Int>?
    var timestamp: Range<Int>?
    var isEphemeral = false
    /// Whether a member has the wrong type.
    var hasWrongType = false

    /// nil when the object is malformed.
    init?(_ scan: inout JSONScan) {
        guard scan.object({ key, scan in readMember(key, &scan) }) else { return nil }
    }

    private static let names: [StaticString] = ["payload", "contentTopic", "meta", "version", "timestamp", "ephemeral"]

    private mutating func readMember(_ key: JSONScan.StringRange, _ scan: inout JSONScan) -> Bool {
        switch scan.string(key, among: Self.names) {
        case 0: readString(\.payload, &scan)
        case 1: readString(\.contentTopic, &scan)
        case 2: readString(\.meta, &scan)
        case 3: readWord(&scan) { fields, word, _ in fields.version = word }
        case 4: readWord(&scan) { fields, word, _ in fields.timestamp = word }
        case 5:
            readWord(&scan) { fields, word, scan in
                fields.isEphemeral = scan.isWord(word, "true")
                if !fields.isEphemeral, !scan.isWord(word, "false") { fields.hasWrongType = true }
            }
        default: scan.skipValue()
        }
    }

    private mutating func readString(_ field: WritableKeyPath<MessageFields, JSONScan.StringRange?>, _ scan: inout JSONScan) -> Bool {
        guard scan.peek() == UInt8(ascii: "\"") else { return readWord(&scan) { fields, _, _ in fields.hasWrongType = true } }
        self[keyPath: field] = scan.string()
        return self[keyPath: field] != nil
    }

    /// Treats null as absent.
    private mutating func readWord(_ scan: inout JSONScan, _ note: (inout MessageFields, Range<Int>, JSONScan) -> Void) -> Bool {
        guard let word = scan.word() else {
            hasWrongType = true
            return scan.skipValue()
        }
        if !scan.isWord(word, "null") { note(&self, word, scan) }
        return true
    }

    func listeningTag(_ topic: JSONScan.StringRange, _ scan: JSONScan) -> TopicTag? {
        guard topic.isEscaped else { return ContentTopic.listeningTag(UnsafeBufferPointer(rebasing: scan.text[topic.range])) }
        return scan.bytes(topic)?.withUnsafeBufferPointer(ContentTopic.listeningTag)
    }

    /// nil when required fields are missing or a field is invalid.
    func message(_ scan: JSONScan) -> WakuMessage? {
        guard !hasWrongType, let payload, let contentTopic, let topic = scan.bytes(contentTopic),
            let topicText = String(validating: topic, as: UTF8.self), let bytes = decoded(payload, scan)
        else { return nil }
        var message = WakuMessage(
            payload: bytes, contentTopic: ContentTopic(rawValue: topicText), version: 0, timestamp: Timestamp(rawValue: 0),
            ephemeral: isEphemeral)
        if let meta {
            guard let bytes = decoded(meta, scan) else { return nil }
            message.meta = bytes
        }
        if let version {
            guard let number = scan.integer(version).flatMap(UInt32.init(exactly:)) else { return nil }
            message.version = number
        }
        if let timestamp {
            guard let number = scan.integer(timestamp) else { return nil }
            message.timestamp = Timestamp(rawValue: number)
        }
        return message
    }

    private func decoded(_ string: JSONScan.StringRange, _ scan: JSONScan) -> [UInt8]? {
        guard string.isEscaped else { return Base64.decode(UnsafeBufferPointer(rebasing: scan.text[string.range])) }
        return scan.bytes(string)?.withUnsafeBufferPointer(Base64.decode)
    }
}
