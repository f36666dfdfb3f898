import Core
import Waku

@testable import WakuP2P

// The halves of Waku's messages that a node does not have, since it is a client only: reading requests and writing responses. For stand-ins of
// filter, lightpush and store nodes.

extension StatusResponse {
    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(10, UInt64(status.code))
        if !status.text.isEmpty { writer.field(11, status.text) }
        if let relayPeerCount { writer.field(12, UInt64(relayPeerCount)) }
        return writer.bytes
    }
}

extension FilterSubscribeRequest {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        self.init(requestID: "", kind: .ping)
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 2:
                guard let kind = Kind(rawValue: try field.varint()) else { throw .malformed }
                self.kind = kind
            case 10: pubsubTopic = try field.pubsubTopic(of: reader)
            case 11:
                guard contentTopics.count < Self.maximumContentTopicCount else { throw .tooMany }
                contentTopics.append(try field.contentTopic(of: reader))
            default: break
            }
        }
    }
}

extension FilterPush {
    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, message.message.encoded())
        writer.field(2, message.pubsubTopic.rawValue)
        return writer.bytes
    }
}

extension LightpushRequest {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var requestID = ""
        var pubsubTopic: PubsubTopic?
        var content: Range<Int>?
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 20: pubsubTopic = try field.pubsubTopic(of: reader)
            case 21: content = try field.content()
            default: break
            }
        }
        self.init(requestID: requestID, pubsubTopic: pubsubTopic, message: try .read(content, of: bytes))
    }
}

extension OldLightpushRequest {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var requestID = ""
        var request: ProtobufReader?
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 2: request = try field.nested(in: reader)
            default: break
            }
        }
        guard var request else { throw .malformed }
        var topic: PubsubTopic?
        var content: Range<Int>?
        while let field = try request.next() {
            switch field.number {
            case 1: topic = try field.pubsubTopic(of: request)
            case 2: content = try field.content()
            default: break
            }
        }
        guard let topic else { throw .malformed }
        self.init(requestID: requestID, pubsubTopic: topic, message: try .read(content, of: request.bytes))
    }
}

extension OldLightpushResponse {
    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(3) { (response: inout ProtobufWriter) in
            response.field(1, isSuccess)
            if !text.isEmpty { response.field(2, text) }
        }
        return writer.bytes
    }
}

/// A store query as a node receives it: see `StoreQuery`.
struct StoreRequest: Hashable, Sendable {
    var requestID = ""
    var includesMessages = false
    var pubsubTopic: PubsubTopic?
    var contentTopics: [ContentTopic] = []
    var startTime: Timestamp?
    var endTime: Timestamp?
    var hashes: [MessageHash] = []
    var cursor: [UInt8]?
    var pageSize: UInt64?
}

extension StoreRequest {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        self.init()
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 2: includesMessages = try field.varint() != 0
            case 10: pubsubTopic = try field.pubsubTopic(of: reader)
            case 11:
                guard contentTopics.count < StoreQuery.maximumTopicCount else { throw .tooMany }
                contentTopics.append(try field.contentTopic(of: reader))
            case 12: startTime = Timestamp(rawValue: unzigzag(try field.varint()))
            case 13: endTime = Timestamp(rawValue: unzigzag(try field.varint()))
            case 20:
                guard hashes.count < Publication.lookUpLimit else { throw .tooMany }
                hashes.append(try field.messageHash(of: reader))
            case 51: cursor = try field.bytes(of: reader, limit: StoreResponse.maximumCursorByteCount)
            case 53: pageSize = try field.varint()
            default: break
            }
        }
    }
}

extension StoreResponse {
    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(10, UInt64(status.code))
        writer.field(11, status.text)
        for entry in entries {
            writer.field(20) { (nested: inout ProtobufWriter) in
                nested.field(1, entry.hash.bytes)
                guard let message = entry.message else { return }
                nested.field(2, message.message.encoded())
                nested.field(3, message.pubsubTopic.rawValue)
            }
        }
        if let cursor { writer.field(51, cursor) }
        return writer.bytes
    }
}
