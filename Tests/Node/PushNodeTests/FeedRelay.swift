import Delivery
import Logging
import NodeAssembly
import NodeMetrics
import PushNode
import ServiceLifecycle
import StatusServer
import TestSupport
import Synchronization
import Core
import Waku
import WakuCrypto

/// A relay that delivers batches from a test, and collects publications.
final class FeedRelay: Relay {
    typealias Deliver = @Sendable ([ReceivedMessage]) async -> Void

    private struct State {
        var deliver: Deliver?
        var published: [WakuMessage] = []
        var isMute = false
        var clockAhead: Duration?
        var missesNothing = false
    }

    private let current = Mutex(State())

    func run(deliver: @escaping Deliver) async {
        current.withLock { $0.deliver = deliver }
        while (try? await Task.sleep(for: .seconds(3600))) != nil {}
        // The closure refers to the node, which refers to this relay: without this they would never be freed.
        current.withLock { $0.deliver = nil }
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let isPublished = current.withLock { state in
            if !state.isMute { state.published.append(message) }
            return !state.isMute
        }
        guard isPublished else { throw RelayError(code: .unavailable, message: "mute") }
        return .confirmed
    }

    /// From now on nothing can be published.
    func mute() { current.withLock { $0.isMute = true } }

    var state: RelayState { current.withLock { $0.deliver == nil } ? .detached("not yet running") : .attached }
    /// From now on the relay says that no message was missed until now.
    func missNothing() { current.withLock { $0.missesNothing = true } }

    var seenUntil: [PubsubTopic: Timestamp] { current.withLock { $0.missesNothing } ? [.statusDefault: .now()] : [:] }
    /// How far the clock of the Waku node is ahead of this machine's.
    var clockAhead: Duration? {
        get { current.withLock { $0.clockAhead } }
        set { current.withLock { $0.clockAhead = newValue } }
    }
    var published: [WakuMessage] { current.withLock { $0.published } }

    /// Returns when the node has accepted them. It must be running.
    func feed(_ messages: [WakuMessage]) async {
        guard let deliver = current.withLock({ $0.deliver }) else { return }
        await deliver(messages.map { ReceivedMessage(message: $0, pubsubTopic: .statusDefault) })
    }
}

/// Runs a node on a ``FeedRelay`` while `body` runs, and stops it gracefully.
func withFedNode(
    _ identity: PrivateKey, _ dataPath: String, _ gorush: any NotificationPosting,
    configure: (inout ServerConfiguration) -> Void = { _ in }, _ body: @escaping @Sendable (FedNode, FeedRelay) async throws -> Void
) async throws {
    let relay = FeedRelay()
    let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    var configuration = ServerConfiguration(identity: identity, dataPath: dataPath)
    configuration.awaitLimit = .seconds(60)
    configuration.replyDelay = .zero
    configuration.deriveAheadLimit = nil
    configure(&configuration)
    let node = FedNode(node: try Server(configuration, gorush: gorush, logger: quiet) { _ in relay }.node)
    let services = ServiceGroup(services: [node.node], logger: quiet)
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await services.run() }
        do {
            try await node.wait { relay.state == .attached }
            try await body(node, relay)
        } catch {
            await services.triggerGracefulShutdown()
            throw error
        }
        await services.triggerGracefulShutdown()
        try await group.waitForAll()
    }
}

struct FedNode: Sendable {
    let node: NodeService

    func count(_ counter: Counter) -> Int { node.counters.snapshot[counter] ?? 0 }

    /// Returns once `condition` holds.
    func wait(fileID: StaticString = #fileID, line: UInt = #line, until condition: @Sendable () -> Bool) async throws {
        try await node.wait(fileID: fileID, line: line, until: condition)
    }
}

extension NodeService {
    /// Returns once `condition` holds.
    ///
    /// - Throws: `RunningNode.Timeout` after a minute, multiplied by ``TestTimeout/factor``.
    func wait(fileID: StaticString = #fileID, line: UInt = #line, until condition: @Sendable () -> Bool) async throws {
        let start = ContinuousClock.now
        while !condition() {
            guard ContinuousClock.now - start < .seconds(60) * TestTimeout.factor else {
                throw RunningNode.Timeout(counts: counters.snapshot)
            }
            // Only yielding would occupy a core that the awaited work needs.
            try await Task.sleep(for: .milliseconds(1))
        }
        TestTimeout.reportWait(since: start, fileID: fileID, line: line)
    }
}
