package import CurlClient
import Foundation
package import Waku
import WakuCrypto
import Core

/// A client of an nwaku node's REST API: one method per call, without state and retries.
///
/// Every call throws ``NwakuAPIError``.
package struct NwakuAPI: Sendable {
    package let address: NodeAddress
    private let client: CurlClient
    private let minimumTimeout: Duration

    /// The largest response with messages. A full cache of 50 of the largest messages is longer in Base64 than this: then all of them are lost
    /// and fetched from the store.
    static let maximumResponseByteCount = 64 << 20
    /// The largest response without messages. Smaller, since JSONDecoder builds a value for each element.
    static let maximumSmallResponseByteCount = 256 << 10

    /// - Parameter minimumTimeout: A lower limit for the timeouts of all calls: for tests on slow machines.
    package init(address: NodeAddress, client: CurlClient, minimumTimeout: Duration = .zero) {
        self.address = address
        self.client = client
        self.minimumTimeout = minimumTimeout
    }

    // MARK: Health

    /// `GET /health`. The health of a node without this call, such as go-waku with 501, is unknown.
    package func health() async throws(NwakuAPIError) -> NodeHealth {
        let path = "/health"
        let answer = try await exchange(url: path, timeout: .seconds(5))
        if answer.status == 501 { return .unknown }
        try check(answer, path: path)
        guard let json = try? JSONDecoder.decode(NodeHealthJSON.self, fromForeign: answer.body) else { throw .unreadable(path) }
        return json.health
    }

    // MARK: Relay

    /// `POST /relay/v1/subscriptions`. Has no effect on topics that are subscribed. There is deliberately no call to unsubscribe: the node would
    /// leave the topic for all its clients.
    package func subscribe(to topics: [PubsubTopic]) async throws(NwakuAPIError) {
        let path = "/relay/v1/subscriptions"
        var body = JSONWriter()
        body.array { for topic in topics { $0.element(topic.rawValue) } }
        try check(try await exchange(url: path, body: body.bytes, timeout: .seconds(10)), path: path)
    }

    /// The result of a poll.
    package struct Poll: Hashable, Sendable {
        /// The wanted messages that are readable and within the network's limits.
        package let messages: [ReceivedMessage]
        /// Messages on unwanted topics, which were not decoded.
        package let unwantedCount: Int
        /// All messages, unreadable ones included.
        package let elementCount: Int
        /// The `Date` header.
        var date: String?

        var unreadableCount: Int { elementCount - unwantedCount - messages.count }
    }

    /// `GET /relay/v1/messages/{topic}`: takes the messages of a topic out of the node's cache. Status 404: the node is not subscribed.
    ///
    /// - Parameter wants: Whether to decode messages on the topic of a ``ContentTopic/listeningTag``; nil decodes all messages.
    package func messages(
        on topic: PubsubTopic, wants: (@Sendable (TopicTag) -> Bool)? = nil
    ) async throws(NwakuAPIError) -> Poll {
        let path = "/relay/v1/messages"
        let answer = try await exchange(url: messagesPath(topic), timeout: .seconds(10), limit: Self.maximumResponseByteCount)
        try check(answer, path: path)
        guard let list = MessageList(json: answer.body, wants: wants) else { throw .unreadable(path) }
        return Poll(
            messages: list.messages.filter { $0.flaw == nil }.map { ReceivedMessage(message: $0, pubsubTopic: topic) },
            unwantedCount: list.unwantedCount, elementCount: list.elementCount,
            date: answer.header("Date"))
    }

    /// `POST /relay/v1/messages/{topic}`. Success does not mean that a peer received the message: the node does not check that.
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

    /// `POST /lightpush/v3/message`: publishes a message. Status 505: the node has no peers. 404 and 503: it does not serve lightpush.
    ///
    /// - Returns: The number of peers that received it, if the node reports it.
    @discardableResult
    package func push(_ message: WakuMessage, on topic: PubsubTopic) async throws(NwakuAPIError) -> Int? {
        let path = "/lightpush/v3/message"
        var body = JSONWriter()
        body.object {
            $0.value("pubsubTopic", topic.rawValue)
            $0.value("message", json: MessageJSON.encode(message))
        }
        let answer = try await exchange(url: path, body: body.bytes, timeout: .seconds(2))
        try check(answer, path: path)
        // The message was published even if the response cannot be decoded.
        return (try? JSONDecoder.decode(PushAnswerJSON.self, fromForeign: answer.body))?.relayPeerCount
    }

    // MARK: Store

    /// `GET /store/v3/messages`. Status 412: the node has no store and knows no peer with one. 429: its rate limit is exceeded.
    package func query(_ query: StoreQuery, timeout: Duration = .seconds(30)) async throws(NwakuAPIError) -> StorePage {
        try await datedPage(query, timeout: timeout).page
    }

    /// The same, with the `Date` header of the answer.
    func datedPage(
        _ query: StoreQuery, timeout: Duration = .seconds(30)
    ) async throws(NwakuAPIError) -> (page: StorePage, date: String?) {
        let path = "/store/v3/messages"
        let limit = query.includesMessages ? Self.maximumResponseByteCount : Self.maximumSmallResponseByteCount
        let answer = try await exchange(url: path + "?" + query.text, timeout: timeout, limit: limit)
        try check(answer, path: path)
        guard let page = StoreAnswer(json: answer.body), page.isReadable(for: query) else { throw .unreadable(path) }
        if let status = page.status, !(200..<300).contains(status) {
            throw .refused(status, path: path, text: Excerpt.of(page.text.utf8))
        }
        return (page.page(for: query), answer.header("Date"))
    }

    // MARK: HTTP

    /// Sends a POST request if there is a body, otherwise GET.
    func exchange(
        url: String, body: [UInt8]? = nil, timeout: Duration, limit: Int = maximumSmallResponseByteCount
    ) async throws(NwakuAPIError) -> HTTPResponse {
        let request = HTTPRequest(
            method: body == nil ? "GET" : "POST", url: address.appending(url),
            headers: body == nil ? [] : [("Content-Type", "application/json")], body: body,
            connectTimeout: max(.seconds(2), minimumTimeout), timeout: max(timeout, minimumTimeout),
            maximumResponseByteCount: limit)
        do {
            return try await client.send(request)
        } catch {
            throw .noAnswer(error, from: address)
        }
    }

    func check(_ answer: HTTPResponse, path: String) throws(NwakuAPIError) {
        guard (200..<300).contains(answer.status) else {
            throw .refused(answer.status, path: path, text: Excerpt.of(answer.body))
        }
    }
}

extension StoreAnswer {
    /// Whether the messages have the form of nwaku's: go-waku writes some members otherwise, so that pages of its messages would look like empty ones, and
    /// a gap like one that was caught up.
    fileprivate func isReadable(for query: StoreQuery) -> Bool {
        guard query.includesMessages, elementCount > 0, !entries.contains(where: { $0.message != nil }) else { return true }
        // Anyone may publish messages with content topics that can't be read, and fill a page with them. Queries with content topics don't find these.
        return query.contentTopics.isEmpty && entries.contains { $0.hash != nil }
    }

    /// The page without entries that the query did not ask for: a node must not be able to inject messages on other topics.
    fileprivate func page(for query: StoreQuery) -> StorePage {
        let received = entries.compactMap { entry -> ReceivedMessage? in
            guard let message = entry.message, message.flaw == nil, let topic = entry.pubsubTopic ?? query.pubsubTopic else { return nil }
            let received = ReceivedMessage(message: message, pubsubTopic: topic)
            return query.covers(received) ? received : nil
        }
        let requested = Set(query.hashes)
        let hashes = entries.compactMap(\.hash).filter { requested.isEmpty || requested.contains($0) }
        var page = StorePage(messages: received, hashes: hashes, cursor: cursor)
        if query.includesMessages { page.unreadableCount = elementCount - entries.count { $0.message.map { $0.flaw == nil } ?? false } }
        return page
    }
}
