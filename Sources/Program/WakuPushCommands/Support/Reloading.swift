import NodeAPI
import PushNode
import ArgumentParser
import Delivery
import Dispatch
import Logging
import NodeAssembly
import ServiceLifecycle
import Synchronization
import UnixSignals

/// A gorush client whose address and credentials can be replaced while the node runs.
final class ReplaceableGorush: NotificationPosting {
    private struct State {
        var client: GorushClient
        var settings: GorushSettings
        /// That of the former client, until this one has connected.
        var certificateEnd: Int?
    }

    private let current: Mutex<State>

    init(_ settings: GorushSettings) throws {
        current = Mutex(State(client: try settings.client(), settings: settings))
    }

    func replace(by client: GorushClient, _ settings: GorushSettings) {
        current.withLock { current in
            let end = settings.url == current.settings.url ? current.client.certificateEnd ?? current.certificateEnd : nil
            current = State(client: client, settings: settings, certificateEnd: end)
        }
    }

    /// Keeps address, credentials and connections.
    func replaceNotifications(by notifications: NotificationSettings) {
        current.withLock { current in
            current.settings.notifications = notifications.rules(forEndpoint: current.settings.rule.name)
            current.client = current.client.posting(current.settings.format)
        }
    }

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        await current.withLock(\.client).post(notifications)
    }

    func healthFailure() async -> String? { await current.withLock(\.client).healthFailure() }

    var certificateEnd: Int? { current.withLock { $0.client.certificateEnd ?? $0.certificateEnd } }

    func showsRepetitionOnce(_ notification: Delivery.Notification) -> Bool {
        current.withLock(\.client).showsRepetitionOnce(notification)
    }

    var format: NotificationFormat { current.withLock(\.settings.format) }
    var profile: PayloadProfile { current.withLock(\.settings.profile) }

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

extension [ReplaceableGorush] {
    /// The options about contents that must be the same at all nodes, with the current configuration file.
    var sharedSettings: [String: String] {
        SharedSettings.notifications(map(\.profile), (Environment.file?.notifications ?? []).map { $0.options.mapValues(\.values) })
    }
}

/// The effects of a reload.
struct ReloadDecision: Equatable {
    private static let ofGorush = names(EndpointKey.allCases.compactMap(\.option), reloading: .value)

    private static func names(_ options: [ServeOption], reloading reload: ServeOption.Reload) -> Set<String> {
        Set(options.filter { $0.reload == reload }.map(\.name))
    }

    /// Options that apply now, if their values, or the contents of their files, differ from the last reload.
    private(set) var applied: [String]
    /// Options that need a restart: their values or the contents of their files have changed since the start.
    private(set) var waiting: Set<String>
    /// Whether addresses and credentials of gorush servers are replaced. If rules of endpoints changed, they are not: the node selects a server by
    /// the rules of its start.
    let replacesGorush: Bool

    /// - Parameters:
    ///   - started: the plan that the node was started with.
    ///   - last: the plan of the last reload; `started` before the first.
    ///   - lastGorush: the plan of the last reload that replaced the gorush servers, if that is not `last`; `started` if there was none.
    ///   - new: the plan that was read now.
    init(started: Serve.Plan, last: Serve.Plan, lastGorush: Serve.Plan? = nil, new: Serve.Plan) {
        let lastGorush = lastGorush ?? last
        let values = Dictionary(uniqueKeysWithValues: new.values.map { ($0.option, $0.values) })
        func changed(since plan: Serve.Plan) -> [String] { plan.values.filter { $0.values != values[$0.option] }.map(\.option) }
        replacesGorush = new.gorush.map(\.rule) == started.gorush.map(\.rule)
        var reloadable = Self.names(ServeOption.all, reloading: .value)
        if !replacesGorush { reloadable.subtract(Self.ofGorush) }
        // Without a secret at the start there is no endpoint for feedback.
        let secrets = [started, new].compactMap(\.configuration.feedbackSecret)
        if secrets.count < 2 { reloadable.remove(Settings.feedbackSecretFile.option.name) }
        applied =
            changed(since: last).filter { reloadable.contains($0) && !Self.ofGorush.contains($0) }
            + changed(since: lastGorush).filter { reloadable.contains($0) && Self.ofGorush.contains($0) }
        waiting = Set(changed(since: started)).subtracting(reloadable)

        if replacesGorush {
            if Self.entries(new) != Self.entries(lastGorush) { applied.append(ConfigurationFile.endpointsKey) }
            for (old, new) in zip(started.gorush, new.gorush) where new.entry != nil {
                if new.connections != old.connections { waiting.insert("\(ConfigurationFile.endpointsKey).connections") }
                if new.batch != old.batch { waiting.insert("\(ConfigurationFile.endpointsKey).batch") }
            }
        } else if (started.gorush + new.gorush).contains(where: { $0.entry != nil }) {
            waiting.insert(ConfigurationFile.endpointsKey)
        }
        func isOfGorush(_ name: String) -> Bool { Self.ofGorush.contains(name) || name.hasPrefix(ConfigurationFile.endpointsKey) }
        let withContent = Self.names(ServeOption.all, reloading: .content)
        func appliesContent(_ name: String) -> Bool { reloadable.contains(name) || isOfGorush(name) || withContent.contains(name) }
        let contents =
            new.contents.changes(since: last.contents).filter { !isOfGorush($0) }
            + (replacesGorush ? new.contents.changes(since: lastGorush.contents).filter(isOfGorush) : [])
        for name in contents where appliesContent(name) && !waiting.contains(name) && !applied.contains(name) {
            applied.append("\(name) (content)")
        }
        for name in new.contents.changes(since: started.contents) where !appliesContent(name) && !waiting.contains(name) {
            waiting.insert("\(name) (content)")
        }
        if new.notifications != last.notifications { applied.append(ConfigurationFile.notificationsKey) }
    }

    /// The keys of each endpoint that apply without a restart, wherever they are in the file.
    private static func entries(_ plan: Serve.Plan) -> [[String: [String]]] {
        let keys = Set(EndpointKey.allCases.filter { $0.option?.reload != .nothing }.map(\.rawValue))
        return plan.gorush.compactMap { $0.entry?.options.filter { keys.contains($0.key) }.mapValues(\.values) }
    }
}

/// Reloads the configuration on SIGHUP and applies the options that can change while the node runs: see ``ReloadDecision``.
///
/// Files that options name are reloaded too: key lists, gorush's credentials and the feedback secret. If anything is invalid, nothing changes.
final class ReloadService: Service {
    private let server: Server
    private let gorush: [ReplaceableGorush]
    private let level: LogLevel
    private let logger: Logger
    private let started: Serve.Plan
    /// The plan of the last reload, and that of the last one that replaced the gorush servers.
    private let last: Mutex<(plan: Serve.Plan, gorush: Serve.Plan)>
    private let queue = DispatchQueue(label: "waku-push.reload")

    init(server: Server, plan: Serve.Plan, gorush: [ReplaceableGorush], level: LogLevel, logger: Logger) {
        self.server = server
        self.gorush = gorush
        self.level = level
        self.logger = logger
        started = plan
        last = Mutex((plan, plan))
    }

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() { beginReload() }
    }

    /// Reads and parses files on a separate thread, because that may take long, or hang on a network folder; the stop does not wait for it.
    private func beginReload() {
        // Values of the task, which the queue does not inherit.
        let (invocation, added) = (Invocation.current, NodeAssembly.added)
        queue.async { [self] in
            Invocation.$current.withValue(invocation) { NodeAssembly.$added.withValue(added) { reload() } }
        }
    }

    private func reload() {
        dispatchPrecondition(condition: .onQueue(queue))
        let file = Environment.file
        do {
            var new = try Serve.reloadedPlan()
            // Feedback is matched with the identity of the start: another one needs a restart.
            let ids = NotificationIDCipher(identity: started.configuration.identity)
            for index in new.gorush.indices { new.gorush[index].ids = ids }
            let last = last.withLock(\.self)
            let decision = ReloadDecision(started: started, last: last.plan, lastGorush: last.gorush, new: new)
            // All files are read before anything changes.
            let clients = try decision.replacesGorush ? new.gorush.map { try $0.client() } : []
            apply(new, clients)
            if new.level != last.plan.level { level.current = new.level }
            self.last.withLock { $0 = (new, decision.replacesGorush ? new : last.gorush) }
            server.node.reloadEnded(nil)
            logger.notice(
                "configuration reloaded",
                metadata: ["changed": "\(decision.applied.isEmpty ? "no option" : decision.applied.joined(separator: ", "))"])
            if !decision.waiting.isEmpty {
                logger.warning("options need a restart", metadata: ["options": "\(decision.waiting.sorted().joined(separator: ", "))"])
            }
        } catch {
            Environment.use(file)
            let reason =
                (error as? InvalidConfiguration)?.message ?? CommandFailure(explaining: error)?.message ?? Serve.message(for: error)
            server.node.reloadEnded(reason)
            logger.error("failed to reload configuration; nothing changed", metadata: ["reason": "\(reason)"])
        }
    }

    /// - Parameters:
    ///   - clients: for each gorush server, or empty to keep their addresses and credentials.
    private func apply(_ new: Serve.Plan, _ clients: [GorushClient]) {
        if clients.isEmpty {
            for gorush in gorush { gorush.replaceNotifications(by: new.notifications) }
        } else {
            for (gorush, (client, settings)) in zip(gorush, zip(clients, new.gorush)) { gorush.replace(by: client, settings) }
        }
        server.replaceLimits(
            new.configuration.limits, gorushTimeouts: clients.isEmpty ? [] : new.gorush.map(\.timeout),
            addedOptions: new.configuration.addedOptions)
        server.node.cluster.replaceSettings(gorush.sharedSettings)
        server.node.replaceWebPushSettings(new.notifications)
        if let secret = new.configuration.feedbackSecret { server.node.replaceFeedbackSecret(secret) }
        server.node.reloadFiles()
    }
}
