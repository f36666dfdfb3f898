import Foundation
import Hummingbird
import LoopbackRelay
import Core
import Waku
import WakuCrypto

/// Responds as nwaku does: plain text for errors, `OK` for success, 404 for a poll without a subscription.
struct LoopbackResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let network: LoopbackNetwork

    private static let maximumBodyByteCount = 16 << 20

    func respond(to request: Request, context: Context) async throws -> Response {
        do throws(Refusal) {
            // A web page can send some requests to any address, though it cannot read the responses: it could publish, and drain the
            // cache that others poll. Only browsers send these headers.
            let site = request.headers.first { $0.name.canonicalName == "sec-fetch-site" }?.value
            guard request.headers[.origin] == nil, ["none", nil].contains(site) else {
                throw Refusal(status: 403, reason: "Pages in browsers are not answered")
            }
            // Topics contain slashes, encoded as %2F: split the path before decoding it.
            let parts = request.uri.path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
            return try await answer(request, method: request.method.rawValue, parts: parts)
        } catch {
            return Self.text(error.reason, status: HTTPResponse.Status(code: error.status))
        }
    }

    private func answer(_ request: Request, method: String, parts: [String]) async throws(Refusal) -> Response {
        switch (method, parts) {
        case ("GET", ["health"]):
            return try Self.json(HealthJSON())
        case ("POST", ["relay", "v1", "subscriptions"]):
            let topics = try await pubsubTopics(request)
            network.withState { $0.subscribe(to: topics) }
            return Self.text("OK")
        case ("DELETE", ["relay", "v1", "subscriptions"]):
            let topics = try await pubsubTopics(request)
            network.withState { $0.unsubscribe(from: topics) }
            return Self.text("OK")
        case ("GET", _) where parts.count == 4 && parts.starts(with: ["relay", "v1", "messages"]):
            guard let messages = network.withState({ $0.poll(PubsubTopic(rawValue: parts[3])) }) else { throw Refusal(status: 404) }
            return try Self.json(messages.map { MessageJSON($0.message) })
        case ("POST", _) where parts.count == 4 && parts.starts(with: ["relay", "v1", "messages"]):
            return try await publish(request, on: PubsubTopic(rawValue: parts[3]))
        case ("POST", ["lightpush", "v3", "message"]):
            let faults = network.faults
            guard faults.servesLightpush else { throw Refusal(status: 404) }
            let push = try await body(request, as: PushJSON.self)
            try publish(push.message, on: push.pubsubTopic.map(PubsubTopic.init(rawValue:)) ?? .statusDefault)
            return try Self.json(["relayPeerCount": faults.relayPeerCount])
        case ("GET", ["store", "v3", "messages"]):
            let received = ContinuousClock.now
            // In steps, so that waiting clients are answered as soon as the fault is removed.
            while network.faults.storeDelay > received.duration(to: .now), (try? await Task.sleep(for: .milliseconds(5))) != nil {}
            if let status = network.faults.storeStatus { throw Refusal(status: status, reason: "the store does not answer") }
            return try query(request)
        default:
            throw Refusal(status: 400, reason: "Bad request initiated. Invalid path or method used.")
        }
    }

    private func pubsubTopics(_ request: Request) async throws(Refusal) -> [PubsubTopic] {
        let topics = try await body(request, as: [String].self)
        guard topics.allSatisfy({ RelayShard($0) != nil }) else {
            throw Refusal(status: 400, reason: "Invalid pubsub topics")
        }
        return topics.map(PubsubTopic.init(rawValue:))
    }

    // MARK: Publishing

    private func publish(_ request: Request, on topic: PubsubTopic) async throws(Refusal) -> Response {
        let message = try await body(request, as: MessageJSON.self)
        guard network.withState({ $0.isSubscribed(to: topic) }) else {
            throw Refusal(status: 400, reason: "Failed to publish: not subscribed to topic \(topic)")
        }
        try publish(message, on: topic)
        return Self.text("OK")
    }

    private func publish(_ json: MessageJSON, on topic: PubsubTopic) throws(Refusal) {
        let message = json.message(defaultTimestamp: .now())
        if let flaw = message.flaw { throw Refusal(status: 400, reason: flaw) }
        if network.losesPublication() { return }
        network.publish(message, on: topic)
    }

    // MARK: Store

    private func query(_ request: Request) throws(Refusal) -> Response {
        let parameters = request.uri.queryParameters
        func value(_ name: String) -> String? { parameters[Substring(name)].map(String.init) }
        func list(_ name: String) -> [String] { value(name)?.split(separator: ",").map(String.init) ?? [] }

        let unreadable = Refusal(status: 400, reason: "Unable to parse the query")
        var query = LoopbackQuery.all
        query.pubsubTopic = value("pubsubTopic").map(PubsubTopic.init(rawValue:))
        query.contentTopics = list("contentTopics").map(ContentTopic.init(rawValue:))
        for hash in list("hashes") {
            guard let hash = Self.hash(hash) else { throw unreadable }
            query.hashes.append(hash)
        }
        if let text = value("startTime") {
            guard let time = Int64(text) else { throw unreadable }
            query.startTime = Timestamp(rawValue: time)
        }
        if let text = value("endTime") {
            guard let time = Int64(text) else { throw unreadable }
            query.endTime = Timestamp(rawValue: time)
        }
        if let text = value("cursor"), !text.isEmpty {
            guard let cursor = Self.hash(text) else { throw unreadable }
            query.cursor = cursor
        }
        if let text = value("pageSize") {
            guard let size = Int(text), size >= 0 else { throw unreadable }
            query.pageSize = size == 0 ? 20 : min(size, 100)
        }
        query.isAscending = value("ascending") ?? "true" == "true"
        guard query.contentTopics.count <= 10 else {
            return try Self.json(StoreJSON(statusCode: 400, statusDesc: "BAD_REQUEST: too many content topics"))
        }
        let (messages, cursor) = network.withState { $0.query(query) }
        return try Self.json(StoreJSON(messages, includesData: value("includeData") == "true", cursor: cursor))
    }

    private static func hash(_ text: String) -> MessageHash? {
        guard let bytes = bytes(hex: text.dropFirst(text.hasPrefix("0x") ? 2 : 0)), bytes.count == SHA256.byteCount else { return nil }
        return MessageHash(bytes: bytes)
    }

    // MARK: Bodies

    private func body<Value: Decodable>(_ request: Request, as type: Value.Type) async throws(Refusal) -> Value {
        let contentType = request.headers[.contentType]?.prefix { $0 != ";" } ?? ""
        guard ["application/json", "text/plain"].contains(contentType) else {
            throw Refusal(status: 400, reason: "Wrong Content-Type '\(contentType)'")
        }
        let buffer: ByteBuffer
        do {
            buffer = try await request.body.collect(upTo: Self.maximumBodyByteCount)
        } catch {
            throw Refusal(status: 413, reason: "Body size exceeded maximum of \(Self.maximumBodyByteCount) bytes")
        }
        do {
            return try JSONDecoder.decode(type, fromForeign: buffer.readableBytesView)
        } catch {
            throw Refusal(status: 400, reason: "Unable to deserialize data")
        }
    }

    private static func json(_ value: some Encodable) throws(Refusal) -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        do {
            let body = ByteBuffer(bytes: try encoder.encode(value))
            return Response(status: .ok, headers: [.contentType: "application/json"], body: ResponseBody(byteBuffer: body))
        } catch {
            throw Refusal(status: 500, reason: "Unable to serialize data")
        }
    }

    private static func text(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
        Response(status: status, headers: [.contentType: "text/plain"], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}

/// An error response: status and text.
private struct Refusal: Error {
    let status: Int
    var reason = ""
}
