import Core
import CurlClient
import Foundation
import NwakuRelay
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// The clients of a recorded push server of status-go.
struct RecordedClients {
    private struct Incomplete: Error {}

    let vectors = StatusGoVectors.recorded
    private let client = CurlClient()

    func api(_ url: String) throws -> NwakuAPI { NwakuAPI(address: try NodeAddress(url), client: client) }

    func flow(_ name: String) throws -> StatusGoVectors.Flow { try #require(vectors.flows.first { $0.name == name }) }

    /// Sends a recorded envelope again, signed and sealed as its client did it, at another time: the recorded one would be too old.
    func send(_ message: StatusGoVectors.Message, at time: Timestamp, _ api: NwakuAPI) async throws {
        guard let envelope = message.applicationMetadata?.bytes.bytes, let signer = message.payloadPlain?.signerPublicKey,
            let encryption = message.encryption
        else { throw Incomplete() }
        let key = try vectors.pair(publicKey: signer)
        let payload =
            if let password = encryption.password {
                TestPayload.sealed(envelope, signedBy: key, topic: password)
            } else {
                TestPayload.sealed(envelope, signedBy: key, to: try PublicKey(parsing: encryption.recipientPublicKey?.bytes ?? []))
            }
        let sent = WakuMessage(payload: payload, contentTopic: ContentTopic(rawValue: message.contentTopic), timestamp: time)
        _ = try await api.push(sent, on: .statusDefault)
    }

    /// The newest answer on the topic of a recorded answer, to the same key and of the same kind, once there is one.
    func answer(like recorded: StatusGoVectors.Message, _ api: NwakuAPI) async throws -> [UInt8] {
        var found: [[UInt8]] = []
        try await eventually {
            found = try await answers(like: recorded, api)
            return !found.isEmpty
        }
        return try #require(found.last)
    }

    /// All answers so far.
    func answers(like recorded: StatusGoVectors.Message, _ api: NwakuAPI) async throws -> [[UInt8]] {
        guard let recipient = recorded.encryption?.recipientPublicKey else { throw Incomplete() }
        let key = try vectors.pair(publicKey: recipient)
        let topic = ContentTopic(rawValue: recorded.contentTopic)
        let server = try vectors.pair("server").publicKey
        return try await api.query(StoreQuery(pubsubTopic: .statusDefault)).messages.map(\.message).compactMap { message in
            guard message.contentTopic == topic, let frame = try? PayloadFrame(parsing: ECIES.open(message.payload, with: key)),
                let envelope = try? MetadataEnvelope(parsing: frame.data, in: frame),
                envelope.kind.rawValue == recorded.applicationMetadata?.type
            else { return nil }
            #expect(envelope.sender == server)
            return envelope.payload
        }
    }
}

/// A notification in a post to gorush: platform and tokens.
enum PostedEntry {
    private struct Body: Decodable {
        struct Entry: Decodable {
            let tokens: [String]
            let platform: Int
        }
        let notifications: [Entry]
    }

    static func list(_ bodies: [[UInt8]]) throws -> [String] {
        try bodies.flatMap { try JSONDecoder().decode(Body.self, from: Data($0)).notifications }.map { "\($0.platform) \($0.tokens)" }
    }
}

extension RawHTTPServer {
    /// The notifications that gorush received.
    var posted: [String] {
        get throws { try PostedEntry.list(requests.filter { $0.head.hasPrefix("POST") }.map { Array($0.body) }) }
    }
}
