import CurlClient
import Foundation
import Core
import SessionProtocol
import SessionStandIns
import Synchronization
import TestSupport
import WakuCrypto

/// The environment of the daemon as Session's push server, which outlives it: storage servers, their list, and the key for onion requests.
final class SessionStage: Sendable {
    /// Two servers share a swarm, so that each message comes from both.
    private static let swarms: [UInt64] = [1 << 62, 1 << 62, 3 << 62]
    private static let timeout = Duration.seconds(60)

    let sodium: Sodium
    let servers: StorageServerStandIn
    private let onion: OnionClient
    private let keyPath: String
    private let nodesPath: String
    private let http = CurlClient()
    private let port = Mutex<UInt16?>(nil)

    /// - Throws: `OptionalLibraryError` when libsodium is not installed; ``Failed``.
    init(in folder: String) async throws {
        sodium = try Sodium.load()
        servers = try await StorageServerStandIn(sodium: sodium, swarms: Self.swarms)
        let secret = SecretBytes.random(count: OnionKey.byteCount)
        onion = OnionClient(serverKey: sodium.x25519PublicKey(of: secret), sodium: sodium)
        (keyPath, nodesPath) = (folder + "/onion.key", folder + "/nodes.json")
        let nodes = StorageServerStandIn.nodesFile(servers.descriptions)
        for (path, content) in [(keyPath, secret.withBytes { hexString($0) }), (nodesPath, nodes)] {
            guard FileManager.default.createFile(atPath: path, contents: Data(content.utf8), attributes: [.posixPermissions: 0o600]) else {
                throw Failed("\(path) can't be made")
            }
        }
    }

    /// The arguments of the next daemon, with its own port.
    func arguments() throws -> [String] {
        let next = try freePort()
        port.withLock { $0 = next }
        return [
            "--session-http", "127.0.0.1:\(next)", "--session-nodes", nodesPath, "--session-onion-key", keyPath,
            "--session-apns-topic", "com.session.crash-test",
        ]
    }

    /// Sends a request to the running daemon, if there is one.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint for subscriptions or unsubscriptions.
    ///   - body: JSON.
    ///   - encryption: the encryption of an onion request; nil for a plain one.
    /// - Returns: nil when there was no answer, or the daemon failed to store the requests.
    func ask(_ endpoint: SessionEndpoint, _ body: String, _ encryption: OnionEncryption?) async throws -> [SessionAnswer]? {
        guard let port = port.withLock(\.self) else { return nil }
        func post(_ path: String, _ body: [UInt8]) async -> [UInt8]? {
            let request = HTTPRequest(method: "POST", url: "http://127.0.0.1:\(port)\(path)", body: body, timeout: Self.timeout)
            guard let response = try? await http.send(request), response.status == 200 else { return nil }
            return response.body
        }
        guard let encryption else {
            return try await post(endpoint.rawValue, Array(body.utf8)).flatMap { try SessionAnswer.all(in: $0) }
        }
        let request = try onion.request("POST", endpoint.rawValue, body: Array(body.utf8), encryption: encryption)
        guard let sealed = await post(SessionEndpoint.onion.rawValue, request.body) else { return nil }
        let answer = try onion.open(sealed, to: request)
        return answer.code == 200 ? try SessionAnswer.all(in: answer.body) : nil
    }

    func shutDown() async { await servers.shutDown() }
}

/// The answer to one request of a body.
enum SessionAnswer: Hashable {
    case added
    case updated
    case removed(Bool)
    case failed(Int)

    private struct Fields: Decodable {
        let success: Bool?
        let added: Bool?
        let updated: Bool?
        let removed: Bool?
        let error: Int?
    }

    private init(_ fields: Fields) throws {
        switch (fields.success, fields.added, fields.updated, fields.removed, fields.error) {
        case (true, true, nil, nil, nil): self = .added
        case (true, nil, true, nil, nil): self = .updated
        case (true, nil, nil, let removed?, nil): self = .removed(removed)
        case (nil, nil, nil, nil, let error?): self = .failed(error)
        default: throw Failed("an answer of Session's endpoints is malformed")
        }
    }

    /// nil when the daemon failed to store the requests; it may do so later.
    static func all(in body: [UInt8]) throws -> [SessionAnswer]? {
        let fields =
            body.first == UInt8(ascii: "[")
            ? try JSONDecoder().decode([Fields].self, from: Data(body)) : [try JSONDecoder().decode(Fields.self, from: Data(body))]
        let answers = try fields.map { try SessionAnswer($0) }
        let failures = [RequestError.Code.serviceTimeout, .internalError].map { SessionAnswer.failed($0.rawValue) }
        return answers.contains(where: failures.contains) ? nil : answers
    }
}
