package import CurlClient
import Foundation
package import Waku
import WakuCrypto

/// The REST API of an nwaku node, call by call: nothing is remembered or tried again.
///
/// Every call throws ``NwakuAPIError``.
package struct NwakuAPI: Sendable {
    package let address: NodeAddress
    private let client: CurlClient
    private let leastPatience: Duration

    /// The largest answer that is read. A full cache of 50 of the largest messages is longer in Base64 than this: then all of them are lost,
    /// and looked up in the store.
    static let maximumResponseByteCount = 64 << 20
    /// The largest answer that is read where it holds no messages. A decoder builds a value for each element of it.
    static let maximumSmallResponseByteCount = 256 << 10

    package init(address: NodeAddress, client: CurlClient) {
        self.init(address: address, client: client, leastPatience: .zero)
    }

    /// - Parameter leastPatience: Below which no call's time-out lies: for tests on slow machines.
    init(address: NodeAddress, client: CurlClient, leastPatience: Duration) {
        self.address = address
        self.client = client
        self.leastPatience = leastPatience
    }

    // MARK: Health

    /// `GET /health`. A node that does not know the call, such as go-waku with 501, has unknown health.
    package func health() async throws(NwakuAPIError) -> NodeHealth {
        let path = "/health"
        let answer = try await exchange(url: path, timeout: .seconds(5))
        if answer.status == 501 { return .unknown }
        try check(answer, path: path)
        return try decode(NodeHealthJSON.self, answer.body, path: path).health
    }

    // MARK: Relay

    /// `POST /relay/v1/subscriptions`. Harmless when it subscribes already. There is no way back on purpose: the node would leave the topic
    /// for everybody.
    package func subscribe(to topics: [PubsubTopic]) async throws(NwakuAPIError) {
        let path = "/relay/v1/subscriptions"
        let body = try encode(topics.map(\.rawValue), path: path)
        try check(try await exchange(url: path, body: body, timeout: .seconds(10)), path: path)
    }

    /// What a poll brought.
    package struct Poll: Hashable, Sendable {
        /// Those that can be read, are within the network's limits, and wanted.
        package let messages: [ReceivedMessage]
        /// On topics that nobody wants: nothing else was read of them.
        package let unwantedCount: Int
        /// All, with the unreadable ones.
        package let elementCount: Int

        var unreadableCount: Int { elementCount - unwantedCount - messages.count }
    }

    /// `GET /relay/v1/messages/{topic}`: takes what the node kept of the topic. Status 404 means that the node is not subscribed.
    /// - Parameter wants: Which topics of the form of ``ContentTopic/init(_:)`` are worth reading; nil: all messages are, whatever their topic.
    package func messages(
        on topic: PubsubTopic, wants: (@Sendable (TopicTag) -> Bool)? = nil
    ) async throws(NwakuAPIError) -> Poll {
        let path = "/relay/v1/messages"
        let answer = try await exchange(url: messagesPath(topic), timeout: .seconds(10), limit: Self.maximumResponseByteCount)
        try check(answer, path: path)
        guard let list = MessageList(json: answer.body, wants: wants) else { throw .unreadable(path) }
        return Poll(
            messages: list.messages.filter { $0.flaw == nil }.map { ReceivedMessage(message: $0, pubsubTopic: topic) },
            unwantedCount: list.unwantedCount, elementCount: list.elementCount)
    }

    /// `POST /relay/v1/messages/{topic}`. That it returns proves nothing: the node does not look whether it reached a peer.
    package func publish(_ message: WakuMessage, on topic: PubsubTopic) async throws(NwakuAPIError) {
        let path = "/relay/v1/messages"
        let body = MessageJSON.encode(message)
        try check(try await exchange(url: messagesPath(topic), body: body, timeout: .seconds(5)), path: path)
    }

    private func messagesPath(_ topic: PubsubTopic) -> String {
        "/relay/v1/messages/" + percentEncoded(topic.rawValue)
    }

    // MARK: Lightpush

    private struct PushAnswerJSON: Decodable {
        let relayPeerCount: Int?
    }

    /// `POST /lightpush/v3/message`: publishes, and tells to how many peers, where the node says so. Status 505: it has none. 404 and 503:
    /// it does not serve lightpush.
    @discardableResult
    package func push(_ message: WakuMessage, on topic: PubsubTopic) async throws(NwakuAPIError) -> Int? {
        let path = "/lightpush/v3/message"
        var body = JSONText()
        body.beginObject()
        body.member("pubsubTopic", topic.rawValue)
        body.member("message", json: MessageJSON.encode(message))
        body.endObject()
        let answer = try await exchange(url: path, body: body.bytes, timeout: .seconds(2))
        try check(answer, path: path)
        // The message is out, whatever else the answer says.
        return (try? JSONDecoder().decode(PushAnswerJSON.self, from: Data(answer.body)))?.relayPeerCount
    }

    // MARK: Store

    /// `GET /store/v3/messages`. Status 412: the node has no store and knows none. 429: it is asked too often.
    package func query(_ query: StoreQuery, timeout: Duration = .seconds(30)) async throws(NwakuAPIError) -> StorePage {
        let path = "/store/v3/messages"
        let limit = query.includesMessages ? Self.maximumResponseByteCount : Self.maximumSmallResponseByteCount
        let answer = try await exchange(url: path + "?" + query.text, timeout: timeout, limit: limit)
        try check(answer, path: path)
        guard let page = StoreAnswer(json: answer.body) else { throw .unreadable(path) }
        if let status = page.status, !(200..<300).contains(status) {
            throw .refused(status, path: path, text: NwakuAPIError.excerpt(Array(page.text.utf8)))
        }
        return page.page(asked: query)
    }

    // MARK: -

    /// POSTs where there is a body.
    func exchange(
        url: String, body: [UInt8]? = nil, timeout: Duration, limit: Int = maximumSmallResponseByteCount
    ) async throws(NwakuAPIError) -> HTTPResponse {
        let request = HTTPRequest(
            method: body == nil ? "GET" : "POST", url: address.appending(url),
            headers: body == nil ? [] : [("Content-Type", "application/json")], body: body,
            connectTimeout: max(.seconds(2), leastPatience), timeout: max(timeout, leastPatience),
            maximumResponseByteCount: limit)
        do {
            return try await client.send(request)
        } catch {
            throw .noAnswer(error, from: address)
        }
    }

    func check(_ answer: HTTPResponse, path: String) throws(NwakuAPIError) {
        guard (200..<300).contains(answer.status) else {
            throw .refused(answer.status, path: path, text: NwakuAPIError.excerpt(answer.body))
        }
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ body: [UInt8], path: String) throws(NwakuAPIError) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(body))
        } catch {
            throw .unreadable(path)
        }
    }

    private func encode(_ value: some Encodable, path: String) throws(NwakuAPIError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        do {
            return Array(try encoder.encode(value))
        } catch {
            throw NwakuAPIError(code: .unreadable, message: "the body for \(path) can't be written: \(error)")
        }
    }
}

extension StoreAnswer {
    /// Without what was not asked for: a node can't have answers go out on a pubsub topic of its choice, nor bring what nobody queried.
    fileprivate func page(asked query: StoreQuery) -> StorePage {
        let received = entries.compactMap { entry -> ReceivedMessage? in
            guard let message = entry.message, message.flaw == nil, let topic = entry.pubsubTopic ?? query.pubsubTopic else { return nil }
            let received = ReceivedMessage(message: message, pubsubTopic: topic)
            return query.covers(received) ? received : nil
        }
        let asked = Set(query.hashes)
        let hashes = entries.compactMap(\.hash).filter { asked.isEmpty || asked.contains($0) }
        return StorePage(messages: received, hashes: hashes, cursor: cursor)
    }
}
