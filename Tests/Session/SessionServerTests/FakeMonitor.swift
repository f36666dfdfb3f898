import SessionProtocol
import Synchronization
import TestSupport

@testable import SessionServer

/// A fake of the storage servers: records the subscriptions to monitor, and reports messages.
final class FakeMonitor: SubscriptionMonitoring {
    private struct State {
        var monitored: [SubscriptionID: MonitoredSubscription] = [:]
        var reloads = 0
        var removals = 0
        var figures = SubscriptionMonitor.Figures()
        var entries: (any MonitorEntrySource)?
        var receiver: (any SessionMessageReceiver)?
        var count: (@Sendable (MonitorEvent) -> Void)?
        var successor: FakeMonitor?
        var successorsAccounts: [AccountID]?
    }

    private let state = Mutex(State())

    init() {
        figures = {
            var figures = SubscriptionMonitor.Figures()
            (figures.knownServers, figures.connectedServers, figures.knownSwarms, figures.reachableSwarms) = (4, 4, 2, 2)
            return figures
        }()
    }

    var make: MakeSubscriptionMonitor {
        { [self] entries, receiver, _, count in
            state.withLock { ($0.entries, $0.receiver, $0.count) = (entries, receiver, count) }
            return self
        }
    }

    func load(_ all: [MonitoredSubscription]) { state.withLock { state in for one in all { state.monitored[one.id] = one } } }
    func apply(_ change: MonitoringChange) {
        switch change {
        case .set(let subscription): set(subscription)
        case .remove(let id): remove(id)
        }
    }
    func set(_ subscription: MonitoredSubscription) { state.withLock { $0.monitored[subscription.id] = subscription } }
    func remove(_ id: SubscriptionID) { state.withLock { $0.monitored[id] = nil } }
    func removeAccounts(where isAssignedElsewhere: @escaping @Sendable (AccountID) -> Bool) {
        state.withLock { state in
            state.removals += 1
            state.monitored = state.monitored.filter { !isAssignedElsewhere($0.value.account) }
        }
    }
    func run() async throws {
        while (try? await Task.sleep(for: .seconds(3600))) != nil {}
        let accounts = state.withLock(\.successor)?.accounts
        state.withLock { $0.successorsAccounts = accounts }
    }
    func reloadServers() { state.withLock { $0.reloads += 1 } }

    var figures: SubscriptionMonitor.Figures {
        get { state.withLock(\.figures) }
        set { state.withLock { $0.figures = newValue } }
    }

    var monitored: [SubscriptionID: MonitoredSubscription] { state.withLock(\.monitored) }
    var accounts: [AccountID] { monitored.values.map(\.account) }
    var reloads: Int { state.withLock(\.reloads) }
    /// How often accounts of other nodes were removed.
    var removals: Int { state.withLock(\.removals) }

    /// Records the accounts of another node's monitor when the run of this one ends.
    func setSuccessor(_ successor: FakeMonitor) { state.withLock { $0.successor = successor } }
    var successorsAccounts: [AccountID]? { state.withLock(\.successorsAccounts) }

    /// The entries with which storage servers would be asked for these subscriptions. Removes those that have ended.
    func entries(of ids: [SubscriptionID]) async throws -> [SubscriptionID: MonitorEntry] {
        guard let (found, ended) = try await state.withLock(\.entries)?.entries(of: ids) else { return [:] }
        for id in ended { remove(id) }
        return found
    }

    /// Returns when the messages are stored or dropped.
    func report(_ messages: [NotifyMessage], by server: [UInt8] = []) async {
        await take(messages, by: server)
        await settle()
    }

    func take(_ messages: [NotifyMessage], by server: [UInt8] = [], receivedAt: Int64 = .now * 1000) async {
        await state.withLock(\.receiver)?.take(messages.map { ($0, receivedAt, server) })
    }
    func settle() async { await state.withLock(\.receiver)?.settle() }

    func tell(_ event: MonitorEvent) { state.withLock(\.count)?(event) }
}
