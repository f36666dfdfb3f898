import Core
import Foundation
import HTTPService
import HTTPTypes
import Hummingbird
import NIOCore
import Storage
import WakuCrypto

/// `POST /search`: the stored state of a registrant or a notification, for the status page.
///
/// | status | when |
/// |---|---|
/// | 200 | `{"lines":[{"name":"…","value":"…"}]}`; no lines: nothing is stored |
/// | 400 | not a ``SearchQuestion`` |
/// | 403 | the connection comes from another machine or through a proxy, or the request from another page |
/// | 413 | body over 1 KiB |
/// | 503 | too many searches at once, or the database can't be read |
///
/// Bodies are neither logged nor stored.
struct SearchEndpoint: Sendable {
    static let byteLimit = 1 << 10
    /// Maximum number of searches at once: a database that hangs must not gather them.
    private static let searchLimit = 4

    let search: @Sendable (SearchQuestion) async throws(StoreError) -> [PageFigures.ProtocolLines.Line]
    private let places = AsyncSemaphore(searchLimit)

    func answer(_ request: Request, _ context: PeerContext) async throws -> Response {
        guard context.isLocal(request), Self.isOwnPage(request) else {
            return .text("searches are answered on this machine only: use an SSH tunnel, or waku-push admin\n", .forbidden)
        }
        guard let body = try? await request.body.collect(upTo: Self.byteLimit) else { return .text("too long\n", .contentTooLarge) }
        guard let question = SearchQuestion(parsing: Array(body.readableBytesView)) else {
            return .text("expected the hashes of a key, or a notif_id\n", .badRequest)
        }
        guard places.tryAcquire(1) else { return .text("too many searches at once\n", .serviceUnavailable) }
        defer { places.release() }
        do throws(StoreError) {
            let lines = try await search(question)
            return .guarded(ByteBuffer(bytes: (try? JSONEncoder().encode(["lines": lines])) ?? Data("{}".utf8)), Response.json)
        } catch {
            return .text("the database can't be read\n", .serviceUnavailable)
        }
    }

    /// Whether the request comes from the page of this address, or not from a browser: browsers name the page that posts. Names of other machines
    /// don't count: a page under such a name comes through a proxy.
    private static func isOwnPage(_ request: Request) -> Bool {
        guard let origin = request.headers[.origin] else { return true }
        guard let authority = request.head.authority, HostPolicy().permits(authority) else { return false }
        return origin == "http://" + authority || origin == "https://" + authority
    }
}

/// The question of a search. The page computes the hashes of a key itself, so that keys are not sent.
enum SearchQuestion: Hashable, Sendable {
    /// `{"registrant":["…"]}`: hashes of a public key in hex, of 64 (SHAKE-256) or 32 bytes (SHA3-256), at most two.
    case registrant([[UInt8]])
    /// `{"notification":"…"}`: gorush's notif_id.
    case notification(String)

    private struct Body: Decodable {
        let registrant: [String]?
        let notification: String?
    }

    init?(parsing body: [UInt8]) {
        guard let body = try? JSONDecoder.decode(Body.self, fromForeign: body) else { return nil }
        switch (body.registrant, body.notification) {
        case (let digits?, nil):
            let hashes = digits.compactMap { bytes(hex: $0) }.filter { [32, 64].contains($0.count) }
            guard hashes.count == digits.count, (1...2).contains(hashes.count) else { return nil }
            self = .registrant(hashes)
        case (nil, let id?): self = .notification(id)
        default: return nil
        }
    }
}
