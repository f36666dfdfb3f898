import PushNode
import ArgumentParser
import Delivery
import Dispatch
import Logging
import NodeAPI
import NodeAssembly
import ServiceLifecycle
import StatusServer
import Synchronization
import UnixSignals

/// A gorush client whose address and credentials can be replaced while the node runs.
final class ReplaceableGorush: NotificationPosting {
    private let current: Mutex<(client: GorushClient, settings: GorushSettings)>

    init(_ settings: GorushSettings) throws {
        current = Mutex((try settings.client(), settings))
    }

    func replace(by client: GorushClient, _ settings: GorushSettings) {
        current.withLock { $0 = (client, settings) }
    }

    /// Replaces the notification settings, and keeps address and credentials.
    ///
    /// - Throws: as ``GorushSettings/client()``.
    func replaceNotifications(by notifications: NotificationSettings) throws {
        var settings = current.withLock(\.settings)
        settings.notifications = notifications
        replace(by: try settings.client(), settings)
    }

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        await current.withLock(\.client).post(notifications)
    }

    func healthFailure() async -> String? { await current.withLock(\.client).healthFailure() }

    func showsRepetitionOnce(_ notification: Delivery.Notification) -> Bool {
        current.withLock(\.client).showsRepetitionOnce(notification)
    }

    var format: NotificationFormat { current.withLock(\.settings.format) }

    /// URL and rule, without credentials.
    var endpoint: AdminAPI.Setup.Endpoint {
        current.withLock { AdminAPI.Setup.Endpoint(url: $0.settings.url, rule: $0.settings.rule) }
    }

    func inspect() async -> AdminAPI.InspectedGorush {
        let settings = current.withLock(\.settings)
        do throws(CommandFailure) {
            return try await settings.inspect()
        } catch {
            return AdminAPI.InspectedGorush(settings.rule, nil, problem: error.message)
        }
    }
}

/// Reloads the configuration on SIGHUP and applies the options that can change while the node runs.
///
/// Files that options name are reloaded too: key lists and gorush's credentials. If anything is invalid, nothing changes.
final class ReloadService: Service {
    /// Options that can change while the node runs. The others need a restart.
    static var reloadable: Set<String> { ofNode.union(NodeAssembly.addedOptions.filter(\.isReloadable).map(\.name)) }
    private static let ofNode: Set<String> = [
        "log-level", "limit", "allow-keys", "deny-keys", "gorush", "gorush-ca", "gorush-user", "gorush-password-file", "gorush-token-file",
        "gorush-header", "gorush-timeout", "payload-profile",
    ]

    private let server: Server
    private let gorush: [ReplaceableGorush]
    private let level: LogLevel
    private let logger: Logger
    private let current: Mutex<Serve.Plan>
    private let queue = DispatchQueue(label: "waku-push.reload")

    init(server: Server, plan: Serve.Plan, gorush: [ReplaceableGorush], level: LogLevel, logger: Logger) {
        self.server = server
        self.gorush = gorush
        self.level = level
        self.logger = logger
        current = Mutex(plan)
    }

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() { await reloadOnQueue() }
    }

    /// Reads and parses files on a separate thread, because that may take long, or hang on a network folder.
    private func reloadOnQueue() async {
        // Values of the task, which the queue does not inherit.
        let (invocation, added) = (Invocation.current, NodeAssembly.added)
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                Invocation.$current.withValue(invocation) { NodeAssembly.$added.withValue(added) { reload() } }
                continuation.resume()
            }
        }
    }

    private func reload() {
        dispatchPrecondition(condition: .onQueue(queue))
        let old = current.withLock(\.self)
        let file = Environment.file
        do {
            let new = try Serve.reloadedPlan()
            let clients = try new.gorush.map { try $0.client() }
            var waiting = Set(new.values.filter { !old.values.contains($0) }.map(\.option)).subtracting(Self.reloadable)
            let changed = new.values.filter { value in !old.values.contains { $0.option == value.option && $0.values == value.values } }
            waiting.formIntersection(changed.map(\.option))
            if new.gorush.map(\.rule) == old.gorush.map(\.rule) {
                for (gorush, (client, settings)) in zip(gorush, zip(clients, new.gorush)) { gorush.replace(by: client, settings) }
            } else {
                waiting.insert(ConfigurationFile.endpointsKey)
                for (gorush, settings) in zip(gorush, old.gorush) {
                    try gorush.replaceNotifications(by: new.notifications.rules(forEndpoint: settings.rule.name))
                }
            }
            server.replaceLimits(new.configuration.limits, addedOptions: new.configuration.addedOptions)
            server.node.replaceWebPushSettings(new.notifications)
            server.node.reloadFiles()
            if new.level != old.level { level.current = new.level }
            current.withLock { $0 = new }
            var taken = changed.map(\.option).filter { !waiting.contains($0) }
            if new.notifications != old.notifications { taken.append(ConfigurationFile.notificationsKey) }
            logger.notice(
                "configuration reloaded", metadata: ["changed": "\(taken.isEmpty ? "no option" : taken.joined(separator: ", "))"])
            if !waiting.isEmpty {
                logger.warning("options need a restart", metadata: ["options": "\(waiting.sorted().joined(separator: ", "))"])
            }
        } catch {
            Environment.use(file)
            let reason =
                (error as? InvalidConfiguration)?.message ?? CommandFailure(explaining: error)?.message ?? Serve.message(for: error)
            logger.error("failed to reload configuration; nothing changed", metadata: ["reason": "\(reason)"])
        }
    }
}
