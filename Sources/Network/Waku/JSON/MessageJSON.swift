public import Core
import Foundation

/// A message in the JSON of a node's REST API.
///
///     {"payload": base64, "contentTopic": text, "version"?: number, "timestamp"?: nanoseconds, "meta"?: base64, "ephemeral"?: bool}
///
/// Base64 is the standard alphabet with padding. The timestamp is an integer beyond 2^53: it never passes through a Double.
public struct MessageJSON: Codable, Sendable {
    let payload: Data
    let contentTopic: String
    let version: UInt32?
    let timestamp: Int64?
    let meta: Data?
    let ephemeral: Bool?

    /// The JSON form of a message. Empty meta and a false ephemeral flag are left out.
    public init(_ message: WakuMessage) {
        payload = Data(message.payload)
        contentTopic = message.contentTopic.rawValue
        version = message.version
        timestamp = message.timestamp.rawValue
        meta = message.meta.isEmpty ? nil : Data(message.meta)
        ephemeral = message.ephemeral ? true : nil
    }

    /// The message, not validated: see ``WakuMessage/flaw``.
    ///
    /// - Parameter defaultTimestamp: Used when the JSON has none.
    public func message(defaultTimestamp: Timestamp) -> WakuMessage {
        WakuMessage(
            payload: Array(payload), contentTopic: ContentTopic(rawValue: contentTopic), version: version ?? 0,
            timestamp: timestamp.map(Timestamp.init(rawValue:)) ?? defaultTimestamp, meta: meta.map(Array.init) ?? [],
            ephemeral: ephemeral ?? false)
    }
}

extension MessageJSON {
    /// The JSON text of a message. The bytes are written directly: JSONEncoder takes longer than encrypting the message.
    public static func encode(_ message: WakuMessage) -> [UInt8] {
        var writer = JSONWriter(capacity: message.payload.count / 3 * 4 + 256)
        writer.object { json in
            json.value("payload", base64: message.payload)
            json.value("contentTopic", message.contentTopic.rawValue)
            json.value("version", message.version)
            json.value("timestamp", message.timestamp.rawValue)
            if !message.meta.isEmpty { json.value("meta", base64: message.meta) }
            if message.ephemeral { json.value("ephemeral", true) }
        }
        return writer.bytes
    }
}

/// An element of a JSON array that decodes to nil instead of failing the whole array.
public struct LenientElement<Value: Decodable & Sendable>: Decodable, Sendable {
    /// nil when the element could not be decoded.
    public let value: Value?

    /// Never throws: ``value`` is nil when the element cannot be decoded.
    public init(from decoder: any Decoder) {
        value = try? Value(from: decoder)
    }
}

extension WakuMessage {
    /// Why nodes would refuse this message, in a phrase; nil when it is within the network's limits.
    public var flaw: String? {
        // nwaku's allowance for the fields other than payload and topic.
        let overhead = 32
        if payload.isEmpty { return "payload is empty" }
        if contentTopic.rawValue.isEmpty { return "content topic is empty" }
        if meta.count > Self.maximumMetaByteCount { return "meta is longer than \(Self.maximumMetaByteCount) bytes" }
        if payload.count + contentTopic.rawValue.utf8.count + overhead > Self.maximumByteCount {
            return "message size exceeded maximum of \(Self.maximumByteCount) bytes"
        }
        return nil
    }
}
