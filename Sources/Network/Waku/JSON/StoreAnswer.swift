import WakuCrypto
import Core

/// The JSON response of a node's REST API to a store query, parsed in one pass.
///
///     {"statusCode"?: number, "statusDesc"?: text, "messages"?: [entry, …], "paginationCursor"?: text}
///     entry: {"messageHash"?: "0x…", "message"?: message, "pubsubTopic"?: text}
///
/// ``MessageJSON`` describes a message. Memory is bounded by ``entryLimit`` for a response of any length: a decoder that builds a
/// value per element would take many times the response's length for an array of empty objects.
public struct StoreAnswer: Sendable {
    /// The maximum number of entries. A response with more is refused.
    public static let entryLimit = StoreQuery.maximumPageSize
    /// The maximum length of the cursor in bytes. Nodes use message hashes as cursors: `0x` and 64 digits.
    public static let cursorByteLimit = 1024
    private static let textByteLimit = 160

    /// A stored message.
    public struct Entry: Hashable, Sendable {
        /// The hash that the store reports; nil when it is not 32 bytes in hexadecimal digits.
        public var hash: MessageHash?
        /// The message; nil when it was not requested, or is invalid.
        public var message: WakuMessage?
        /// The message's pubsub topic; nil when it is absent or not a string.
        public var pubsubTopic: PubsubTopic?
    }

    /// The status code, with the numbers of HTTP; nil when it is absent.
    public private(set) var status: Int?
    /// The first 160 bytes of the status description.
    public private(set) var text = ""
    /// The elements of `messages` that are objects, in order.
    public private(set) var entries: [Entry] = []
    /// The position of the next page, for ``StoreQuery/cursor``; nil on the last page.
    public private(set) var cursor: String?
    /// The number of elements of `messages`, including elements that are not objects.
    package private(set) var elementCount = 0

    /// nil when the text is not such an object or exceeds the limits.
    ///
    /// - Parameter json: UTF-8.
    public init?(json: [UInt8]) {
        let isRead = json.withUnsafeBufferPointer { text in
            var scan = JSONScan(text)
            return scan.object { key, scan in readMember(key, &scan) } && scan.peek() == nil
        }
        guard isRead else { return nil }
    }

    private mutating func readMember(_ key: JSONScan.StringRange, _ scan: inout JSONScan) -> Bool {
        switch scan.string(key, among: ["statusCode", "statusDesc", "messages", "paginationCursor"]) {
        case 0:
            guard let word = scan.word() else { return false }
            guard !scan.isWord(word, "null") else { return true }
            status = scan.integer(word).flatMap { Int(exactly: $0) }
            return status != nil
        case 1:
            guard let bytes = scan.optionalText() else { return false }
            text = String(decoding: (bytes ?? []).prefix(Self.textByteLimit), as: UTF8.self)
            return true
        case 2:
            return readEntries(&scan)
        case 3:
            guard let bytes = scan.optionalText(), bytes?.count ?? 0 <= Self.cursorByteLimit else { return false }
            cursor = bytes.flatMap { String(validating: $0, as: UTF8.self) }.flatMap { $0.isEmpty ? nil : $0 }
            return true
        default:
            return scan.skipValue()
        }
    }

    private mutating func readEntries(_ scan: inout JSONScan) -> Bool {
        guard scan.peek() == UInt8(ascii: "[") else { return scan.takeNull() }
        return scan.array { scan in
            elementCount += 1
            guard elementCount <= Self.entryLimit else { return false }
            guard scan.peek() == UInt8(ascii: "{") else { return scan.skipValue() }
            var entry = Entry()
            guard scan.object({ key, scan in entry.readMember(key, &scan) }) else { return false }
            entries.append(entry)
            return true
        }
    }
}

extension StoreAnswer.Entry {
    /// Treats a member of the wrong type as absent.
    fileprivate mutating func readMember(_ key: JSONScan.StringRange, _ scan: inout JSONScan) -> Bool {
        switch scan.string(key, among: ["messageHash", "message", "pubsubTopic"]) {
        case 0 where scan.peek() == UInt8(ascii: "\""):
            guard let string = scan.string() else { return false }
            hash = scan.bytes(string).flatMap(Self.hash)
            return true
        case 1 where scan.peek() == UInt8(ascii: "{"):
            guard let fields = MessageFields(&scan) else { return false }
            message = fields.message(scan)
            return true
        case 2 where scan.peek() == UInt8(ascii: "\""):
            guard let string = scan.string() else { return false }
            pubsubTopic = scan.bytes(string).flatMap { String(validating: $0, as: UTF8.self) }.map(PubsubTopic.init(rawValue:))
            return true
        default:
            return scan.skipValue()
        }
    }

    private static func hash(_ text: [UInt8]) -> MessageHash? {
        guard text.count <= 2 + 2 * SHA256.byteCount else { return nil }
        let digits = String(decoding: text, as: UTF8.self)
        guard let bytes = bytes(hex: digits.dropFirst(digits.hasPrefix("0x") ? 2 : 0)), bytes.count == SHA256.byteCount else { return nil }
        return MessageHash(bytes: bytes)
    }
}
