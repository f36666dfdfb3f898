import Cluster
import Core
import Delivery
import Foundation
import Logging
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushNode
import RateLimits
import ServiceLifecycle
import Storage
import StorePostgreSQL
import Synchronization
import Waku
import WakuCrypto

/// The keys, folders and gorush of a check, and its nodes.
final class ContractStage: Sendable {
    let identity = PrivateKey.generate()
    let owner = PrivateKey.generate()
    let gorush = ContractGorush()
    let folder: String
    private let description: ProtocolDescription

    init(_ description: ProtocolDescription) throws {
        self.description = description
        folder = FileManager.default.temporaryDirectory.path + "/protocol-contract-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    func remove() { try? FileManager.default.removeItem(atPath: folder) }

    /// Runs nodes with the protocol while `body` runs, and stops them gracefully.
    ///
    /// - Parameters:
    ///   - data: the data folder, in the folder of the check; each of several nodes has its own.
    ///   - names: of the nodes of a cluster; none: a single node.
    ///   - ahead: by how much the node's clock is ahead.
    ///   - limits: in place of the protocol's own; all others are off.
    func run(
        in data: String = "data", at store: StoreLocation = .dataFolder, names: [String] = [], ahead: Duration = .zero,
        limits: [RegistrationLimit: String] = [:],
        _ body: ([ContractNode]) async throws -> Void
    ) async throws {
        let quiet = Logger(label: "contract") { _ in SwiftLogNoOpLogHandler() }
        let nodes = try (names.isEmpty ? [nil] : names.map(Optional.some)).map { name in
            var configuration = ServerConfiguration(identity: identity, dataPath: "\(folder)/\(data)\(name ?? "")")
            configuration.store = store
            configuration.unknownHold = .zero
            for (limit, text) in limits { try configuration.limits.set("\(limit.rawValue)=\(text)") }
            configuration.addedOptions = options(with: limits)
            configuration.cluster = name.map { ClusterNode.Configuration(name: $0) }
            let relay = ContractRelay()
            let server = try NodeAssembly.$added.withValue([description]) {
                try Server(configuration, gorush: gorush, logger: quiet, now: { .now() + ahead }) { _ in relay }
            }
            return ContractNode(service: server.node, relay: relay)
        }
        let services = ServiceGroup(services: nodes.map(\.service), logger: quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            do {
                try await wait("the node runs") { nodes.allSatisfy { $0.relay.state == .attached } }
                try await body(nodes)
            } catch {
                await services.triggerGracefulShutdown()
                throw error
            }
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
        }
    }

    /// The texts of the protocol's options that are limits.
    private func options(with limits: [RegistrationLimit: String]) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: description.options.map(\.form).compactMap { form in form.limit.map { (form.name, limits[$0] ?? "off") } }
        )
    }

    /// Moves the rows of the data folder, as `admin migrate` does.
    func move(to address: PostgreSQLAddress) async throws {
        let key = Sealer.storageKey(of: identity)
        let parts = NodeAssembly.$added.withValue([description]) { NodeAssembly.parts }
        let from = try StoreLocation.dataFolder.openForTransfer(in: folder + "/data", storageKey: key, parts: parts)
        defer { try? from.close() }
        let into = try StoreLocation.postgreSQL(address).openForTransfer(in: folder, storageKey: key, parts: parts)
        defer { try? into.close() }
        _ = try await StoreTransfer(from: from, to: into, named: "PostgreSQL").run()
    }

    func wait(_ event: String, until condition: () -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while !condition() {
            guard ContinuousClock.now < deadline else { throw ContractViolation("not within a minute: \(event)") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Compares the number of different notifications of a device.
    func expect(_ count: Int, _ token: String, _ cause: String) throws {
        guard gorush.count(of: token) != count else { return }
        throw ContractViolation("\(cause): expected \(count) notifications of the device, got \(gorush.count(of: token))")
    }
}

/// A running node with the protocol.
struct ContractNode: Sendable {
    let service: NodeService
    let relay: ContractRelay
}

extension [ContractNode] {
    /// Returns when all nodes have submitted the message to the store. Waits until they listen on its topic.
    func feed(_ message: WakuMessage) async throws {
        for node in self {
            for attempt in 1... {
                let foreign = node.service.counters.count(.foreign)
                await node.relay.feed(message)
                if node.service.counters.count(.foreign) == foreign { break }
                guard attempt < 6000 else { throw ContractViolation("the node does not listen on \(message.contentTopic.rawValue)") }
                try await Task.sleep(for: .milliseconds(10))
            }
        }
    }
}

/// A relay that delivers the messages of the check.
final class ContractRelay: Relay {
    private let deliver = Mutex<(@Sendable ([ReceivedMessage]) async -> Void)?>(nil)

    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        self.deliver.withLock { $0 = deliver }
        while (try? await Task.sleep(for: .seconds(3600))) != nil {}
        self.deliver.withLock { $0 = nil }
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication { .confirmed }

    var state: RelayState { deliver.withLock { $0 == nil } ? .detached("not yet running") : .attached }

    func feed(_ message: WakuMessage) async {
        await deliver.withLock(\.self)?([ReceivedMessage(message: message, pubsubTopic: .statusDefault)])
    }
}

/// Takes notifications as gorush does. The token `dead` is dead.
final class ContractGorush: NotificationPosting {
    var certificateEnd: Int? { nil }
    private struct State {
        var posted: [(id: String, token: DeviceToken)] = []
        var whenPosted: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// Called once, during the next post.
    func whenPosted(_ action: @escaping @Sendable () -> Void) { state.withLock { $0.whenPosted = action } }

    /// The ids of all posts to a device.
    func posted(to token: String) -> [String] {
        state.withLock { $0.posted.filter { $0.token == DeviceToken(token) }.map(\.id) }
    }

    /// The number of different notifications of a device.
    func count(of token: String) -> Int { Set(posted(to: token)).count }

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        state.withLock { state in
            state.whenPosted?()
            state.whenPosted = nil
            state.posted += notifications.map { ($0.id, $0.deviceToken) }
            let dead = notifications.filter { $0.deviceToken == DeviceToken("dead") }
            return PostResult(
                outcome: .accepted, postedTokenCount: notifications.count,
                failures: dead.map { PostResult.Failure(notificationID: $0.id, reason: .unregistered) })
        }
    }
}
