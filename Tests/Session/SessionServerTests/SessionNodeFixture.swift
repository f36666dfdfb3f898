import NodeAPI
import Cluster
import CurlClient
import Delivery
import Foundation
import Logging
import NodeAssembly
import NodeMetrics
@testable import PushNode
import Core
import ServiceLifecycle
import SessionProtocol
import RateLimits
import Storage
import StorePostgreSQL
import Synchronization
import TestSupport
import Waku
import WakuCrypto

@testable import SessionServer

final class Flag: Sendable {
    private let isUp = Atomic(false)
    var isRaised: Bool { isUp.load(ordering: .relaxed) }
    func raise() { isUp.store(true, ordering: .relaxed) }
}

/// A relay without messages.
final class SilentRelay: Relay {
    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        while (try? await Task.sleep(for: .seconds(3600))) != nil {}
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication { .confirmed }
    var state: RelayState { .attached }
}

/// A fake gorush that records notifications and reports dead tokens.
final class RecordedGorush: NotificationPosting {
    var certificateEnd: Int? { nil }
    private struct State {
        var posted: [Delivery.Notification] = []
        var dead: Set<String> = []
        var refused: Set<String> = []
        var isAway = false
        var whenPosted: (@Sendable () async -> Void)?
    }

    private let state = Mutex(State())

    func end(_ token: String) { state.withLock { _ = $0.dead.insert(token) } }
    /// Posts with this token are refused from now on.
    func refuse(_ token: String) { state.withLock { _ = $0.refused.insert(token) } }
    /// Posts fail while it is away.
    func setAway(_ isAway: Bool) { state.withLock { $0.isAway = isAway } }
    /// Called once, during the next post and before its answer.
    func whenPosted(_ action: @escaping @Sendable () async -> Void) { state.withLock { $0.whenPosted = action } }
    var posted: [Delivery.Notification] { state.withLock(\.posted) }
    var tokens: [String] { posted.map(\.deviceToken.revealed) }

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        await state.withLock { $0.whenPosted.take() }?()
        let (dead, isRefused, isAway) = state.withLock { state in
            if !state.isAway { state.posted += notifications }
            return (state.dead, notifications.contains { state.refused.contains($0.deviceToken.revealed) }, state.isAway)
        }
        if isAway { return PostResult(outcome: .failed(retryAfter: nil), postedTokenCount: notifications.count) }
        if isRefused { return PostResult(outcome: .refused, postedTokenCount: notifications.count, countedTokenCount: 0) }
        let failures = notifications.filter { dead.contains($0.deviceToken.revealed) }.map { notification in
            PostResult.Failure(notificationID: notification.id, reason: .unregistered)
        }
        return PostResult(
            outcome: .accepted, reason: nil, postedTokenCount: notifications.count, countedTokenCount: notifications.count - failures.count,
            failures: failures)
    }
}

extension SessionPush.Configuration {
    /// - Parameter port: of 127.0.0.1; 0 for any.
    init(_ monitor: FakeMonitor, onionKey: OnionKey, sodium: Sodium, port: Int = 0) {
        self.init(
            httpAddress: SocketAddress(host: "127.0.0.1", port: port), onionKey: onionKey, sodium: sodium, makeMonitor: monitor.make)
    }
}

/// A node with Session's push server and a fake monitor.
struct SessionNodeFixture {
    let folder: TemporaryFolder
    let identity: PrivateKey
    let monitor = FakeMonitor()
    /// The limits, unless a test changes them.
    let limits = Limits.none
    let gorush: RecordedGorush
    let onionKey: OnionKey
    let sodium: Sodium
    private let client = CurlClient()
    private let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    /// The shared database, and the node's name in it.
    private let shared: (address: PostgreSQLAddress, name: String)?

    init() throws {
        folder = try TemporaryFolder()
        sodium = try Sodium.load()
        guard let key = OnionKey(SecretBytes.random(count: 32), sodium: sodium) else { throw CryptoError.invalidKey }
        (identity, gorush, onionKey, shared) = (.generate(), RecordedGorush(), key, nil)
    }

    /// A further node with the same identity and its own monitor.
    init(_ name: String, of first: SessionNodeFixture, sharing address: PostgreSQLAddress) throws {
        folder = try TemporaryFolder()
        (identity, gorush, onionKey, sodium) = (first.identity, first.gorush, first.onionKey, first.sodium)
        shared = (address, name)
    }

    /// A running node.
    struct Running: Sendable {
        let fixture: SessionNodeFixture
        let node: NodeService
        let session: SessionPush
        var service: SessionService? { node.services.lazy.compactMap { $0 as? SessionService }.first }

        func post(_ path: String, _ body: [UInt8]) async throws -> HTTPResponse {
            try await send("POST", path, body)
        }

        func send(
            _ method: String, _ path: String, _ body: [UInt8] = [], headers: [(name: String, value: String)] = []
        ) async throws -> HTTPResponse {
            let url = "http://127.0.0.1:\(service?.httpPort ?? 0)\(path)"
            return try await fixture.client.send(
                HTTPRequest(method: method, url: url, headers: headers, body: body, timeout: .seconds(120)))
        }

        /// Posts a body. Returns the JSON of the answer, which must have status 503.
        func refused(_ path: String, _ body: String) async throws -> (json: String, retryAfter: Int?) {
            let response = try await post(path, Array(body.utf8))
            guard response.status == 503 else { return ("status \(response.status)", nil) }
            return (String(decoding: response.body, as: UTF8.self), response.header("retry-after").flatMap { Int($0) })
        }

        /// Posts a body. Returns the JSON of the answer, which must have status 200.
        func ask(_ path: String, _ body: String) async throws -> String {
            let response = try await post(path, Array(body.utf8))
            guard response.status == 200 else { return "status \(response.status)" }
            return String(decoding: response.body, as: UTF8.self)
        }

        func subscribe(_ account: SessionAccount, _ device: SessionDevice, at signedAt: Int64 = .now) async throws -> String {
            try await ask("/subscribe", account.json(account.subscription(device, at: signedAt)))
        }
    }

    func withNode<R: Sendable>(
        configure: (inout SessionPush.Configuration) -> Void = { _ in }, endpoints: [EndpointRule] = [EndpointRule()],
        webPush: WebPushEndpoint? = nil, tracer: MessageTracer? = nil, logger: Logger? = nil,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, _ body: (Running) async throws -> R
    ) async throws -> R {
        var configuration = SessionPush.Configuration(monitor, onionKey: onionKey, sodium: sodium)
        configuration.apnsTopic = "com.session"
        configure(&configuration)
        let session = SessionPush(configuration)
        var nodeConfiguration = NodeConfiguration(identity: identity, dataPath: folder.path)
        nodeConfiguration.webPush = webPush
        nodeConfiguration.tracer = tracer
        let cluster = shared.map { shared in
            var cluster = ClusterNode.Configuration(name: shared.name)
            // On a busy machine a node may be slow for a long time.
            cluster.times.lease = .seconds(60)
            cluster.times.keyHandoverTime = .seconds(5)
            return cluster
        }
        let node = try NodeService(
            nodeConfiguration, at: shared.map { .postgreSQL($0.address) } ?? .dataFolder, in: cluster, protocols: [session],
            gorush: endpoints.map { GorushEndpoint(gorush, rule: $0) }, logger: logger ?? quiet, now: now
        ) { _ in SilentRelay() }
        let services = ServiceGroup(services: [node], logger: quiet)
        let running = Task { try await services.run() }
        do {
            try await eventually { node.httpPort(of: SessionStorage.protocolNumber) != nil }
            let result = try await body(Running(fixture: self, node: node, session: session))
            await services.triggerGracefulShutdown()
            try await running.value
            return result
        } catch {
            await services.triggerGracefulShutdown()
            _ = try? await running.value
            throw error
        }
    }
}
