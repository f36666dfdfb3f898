import Delivery
import Logging
import LoopbackRelay
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushClient
import PushNode
import RateLimits
import Core
import ServiceLifecycle
import StatusProtocol
import StatusServer
import Synchronization
import TestSupport
import Waku
import WakuCrypto

/// A scripted gorush that records all notifications.
final class ScriptedGorush: NotificationPosting {
    private struct State {
        var outcome = PostOutcome.accepted
        var verdict: TokenVerdict?
        var accepted: [Notification] = []
        var attempts = 0
        var whenPosted: (@Sendable () -> Void)?
        var whilePosting: (@Sendable ([Notification]) async -> Void)?
    }

    private let state = Mutex(State())
    /// 2100-01-01.
    let certificateEnd: Int? = 4_102_444_800

    func answer(_ outcome: PostOutcome, verdict: TokenVerdict? = nil) {
        state.withLock { state in
            state.outcome = outcome
            state.verdict = verdict
        }
    }

    /// Called during a post.
    func whilePosting(_ body: @escaping @Sendable ([Notification]) async -> Void) {
        state.withLock { $0.whilePosting = body }
    }

    var accepted: [Notification] { state.withLock { $0.accepted } }
    var attempts: Int { state.withLock { $0.attempts } }

    /// Called once, during the next post and before its answer.
    func whenPosted(_ action: @escaping @Sendable () -> Void) {
        state.withLock { $0.whenPosted = action }
    }

    func post(_ notifications: [Notification]) async -> PostResult {
        await state.withLock { $0.whilePosting }?(notifications)
        return state.withLock { state in
            state.whenPosted?()
            state.whenPosted = nil
            state.attempts += 1
            if case .accepted = state.outcome { state.accepted += notifications }
            return result(state.outcome, state.verdict, notifications)
        }
    }
}

/// A loopback network, and a data folder on which a node can be started repeatedly.
struct NodeFixture {
    let folder: TemporaryFolder
    let identity: PrivateKey
    let network: LoopbackNetwork
    let gorush: ScriptedGorush

    init(network: LoopbackNetwork = LoopbackNetwork()) throws {
        folder = try TemporaryFolder()
        identity = .generate()
        gorush = ScriptedGorush()
        self.network = network
    }

    /// The same folder and network, for a node with another identity.
    init(_ other: NodeFixture, identity: PrivateKey) {
        (folder, network, gorush) = (other.folder, other.network, other.gorush)
        self.identity = identity
    }

    /// Runs a node while `body` runs, and stops it gracefully.
    ///
    /// - Parameters:
    ///   - posting: replaces the scripted gorush.
    ///   - endpoints: several gorush servers, in place of `posting`.
    ///   - makeRelay: makes a relay besides or instead of the loopback relay.
    func withNode<R: Sendable>(
        configure: (inout ServerConfiguration) -> Void = { _ in }, posting: (any NotificationPosting)? = nil,
        endpoints: [GorushEndpoint]? = nil, logger: Logger? = nil,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: ((RelayNeeds, LoopbackParticipant) throws -> any Relay)? = nil,
        _ body: @escaping @Sendable (RunningNode) async throws -> R
    ) async throws -> R {
        var configuration = ServerConfiguration(identity: identity, dataPath: folder.path)
        // Long, for slow machines: tests that wait for the deadline set a short one.
        configuration.awaitLimit = .seconds(60)
        // Switched off; tests of these features enable them.
        configuration.replyDelay = .zero
        configuration.deriveAheadLimit = nil
        configure(&configuration)
        let logger = logger ?? Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let server = try Server(configuration, gorush: endpoints ?? [GorushEndpoint(posting ?? gorush)], logger: logger, now: now) {
            [network] needs in
            let relay = network.relay(pubsubTopics: needs.pubsubTopics)
            return try makeRelay?(needs, relay) ?? relay
        }
        let node = server.node
        let services = ServiceGroup(services: [node], logger: logger)
        return try await withThrowingTaskGroup(of: R?.self) { group in
            group.addTask {
                try await services.run()
                return nil
            }
            group.addTask { [network, identity, gorush] in
                let running = RunningNode(process: server, network: network, server: identity.publicKey, gorush: gorush)
                let result: R
                do {
                    result = try await body(running)
                } catch {
                    await services.triggerGracefulShutdown()
                    throw error
                }
                await services.triggerGracefulShutdown()
                return result
            }
            var result: R?
            while let next = try await group.next() { result = next ?? result }
            guard let result else { throw NodeEnded() }
            return result
        }
    }

    private struct NodeEnded: Error {}
}

struct RunningNode: Sendable {
    let process: Server
    let network: LoopbackNetwork
    let server: PublicKey
    let gorush: ScriptedGorush

    var node: NodeService { process.node }

    func count(_ counter: Counter) -> Int { node.counters.snapshot[counter] ?? 0 }

    /// Returns once `condition` holds.
    func wait(until condition: @Sendable () -> Bool) async throws {
        try await node.wait(until: condition)
    }

    struct Timeout: Error {
        /// The counters at the time of the timeout.
        var counts: [Counter: Int] = [:]
    }

    /// A client with its own key on the same network.
    func withClient<R: Sendable>(_ identity: PrivateKey = .generate(), _ body: @Sendable (StatusPushClient) async throws -> R) async throws
        -> R
    {
        let client = StatusPushClient(identity: identity, relay: network.relay())
        let running = Task { await client.run() }
        defer { running.cancel() }
        return try await body(client)
    }

    /// Registers a device whose owner is `client`.
    @discardableResult
    func register(
        _ client: TestClient, version: UInt64 = 1, token: String = "device", platform: Platform = .apn, apnTopic: String = "app"
    ) async throws -> PushNotificationRegistrationResponse.ErrorType? {
        try await withClient(client.identity) { pushClient in
            try await pushClient.register(
                DeviceProfile(platform: platform, deviceToken: DeviceToken(token), apnTopic: apnTopic), as: client.installationID,
                accessToken: client.accessToken, version: version, with: server, timeout: .seconds(60))
        }
    }

    func notify(_ client: TestClient, messageID: [UInt8] = randomBytes(32)) async throws -> PushNotificationReport.ErrorType? {
        let entry = PushNotification(
            accessToken: client.accessToken, chatID: Shake256.hash64([1]), publicKey: client.keyHash.bytes,
            installationID: client.installationID, kind: .message, author: Shake256.hash64([2]))
        let reports = try await withClient { try await $0.notify([entry], messageID: messageID, at: server, timeout: .seconds(60)) }
        guard let report = reports.first else { throw Timeout() }
        return report.error
    }
}

extension Counter {
    /// Refusals by a limit of the deployed protocol.
    static func limit(_ limit: RateLimitTable.Refusal) -> Counter {
        guard let counter = LimitCounters.status[limit] else { preconditionFailure("the protocol does not have the limit \(limit)") }
        return counter
    }
}
