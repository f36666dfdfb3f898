import Foundation
import Core
@testable import SessionProtocol
import SessionStandIns
import Synchronization
import TestSupport
import Testing
import WakuCrypto

/// `Tests/Interop/session_network.py`: storage servers and an oxend.
struct PythonNetwork: Sendable {
    let peer: PythonPeer
    /// The servers' entries for a nodes file.
    let servers: [StorageServer]
    let oxend: OxenAddress

    init(swarms: [UInt64]) async throws {
        peer = try PythonPeer("session_network.py", swarms.map { String($0, radix: 16) })
        let words = try await peer.says("oxend")
        guard words.count == 2 else { throw CocoaError(.formatting) }
        oxend = OxenAddress(endpoint: "tcp://127.0.0.1:\(words[0])", serverKey: bytes(hex: words[1]))
        servers = peer.said("server").compactMap { words in
            guard words.count == 4, let port = UInt16(words[1]), let key = bytes(hex: words[2]), let swarm = UInt64(words[3], radix: 16)
            else { return nil }
            return StorageServer(publicKey: key, ip: "127.0.0.1", port: port, swarm: swarm)
        }
    }

    /// Executes a command.
    func tell(_ command: String) async throws {
        let mark = UUID().uuidString
        try peer.tell("\(command)\nmark \(mark)")
        try await peer.says("marked") { $0 == [mark] }
    }

    /// The JSON of a nodes file with some of the servers.
    func nodes(_ indices: [Int], and others: [StorageServer] = []) -> String {
        StorageServerStandIn.nodesFile(indices.map { servers[$0] } + others)
    }

    /// How often a server has answered a request for an account with an errcode (0: success).
    func entryCount(_ index: Int, _ account: AccountID, errcode: Int = 0) -> Int {
        peer.said("entry").count { $0.first == "\(index)" && $0[1] == account.hex && $0.last == "\(errcode)" }
    }

    /// Sends `notify.message` from a server on each connection that monitors the account. The hash is the padded name.
    func report(_ index: Int, _ account: AccountID, _ name: String, byteCount: Int = 10, storedAt: Int64? = nil, expiresAt: Int64? = nil)
        throws
    {
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        try peer.tell(
            "message \(index) \(account.hex) \(Self.hash(name)) \(byteCount) \(storedAt ?? now) \(expiresAt ?? now + 3_600_000)")
    }

    static func hash(_ name: String) -> String { name + String(repeating: "=", count: 40 - name.count) }
}

/// Subscriptions, a running monitor, and the messages that it has delivered.
final class MonitoredNetwork: Sendable {
    let network: PythonNetwork
    let monitor: SubscriptionMonitor
    let store = StoredEntries()
    let inbox = Inbox()
    let events = EventCounts()
    let log = RecordedLog()
    private let sodium: Sodium
    private let folder: TemporaryFolder
    private let running: Task<Void, any Error>
    private let lastID = Mutex<Int64>(0)
    var nodesPath: String { folder.path + "/nodes.json" }

    /// - Parameters:
    ///   - swarms: The swarm of each storage server.
    ///   - listed: The servers that the map lists; nil for all.
    ///   - others: Further storage servers in the map.
    ///   - usesOxend: Whether the map comes from oxend instead of a file.
    ///   - configure: Changes times and limits.
    init(
        swarms: [UInt64], listed: [Int]? = nil, and others: [StorageServer] = [], usesOxend: Bool = false,
        _ configure: (inout SubscriptionMonitor.Configuration) -> Void = { _ in }
    ) async throws {
        sodium = try Sodium.load()
        folder = try TemporaryFolder()
        network = try await PythonNetwork(swarms: swarms)
        let listed = listed ?? Array(swarms.indices)
        let path = folder.path + "/nodes.json"
        try Data(network.nodes(listed, and: others).utf8).write(to: URL(fileURLWithPath: path))
        if usesOxend { try await network.tell("list \(listed.map(String.init).joined(separator: " "))") }
        var configuration = SubscriptionMonitor.Configuration(source: usesOxend ? .oxend(network.oxend) : .file(path))
        configuration.swarms.pauses = [.milliseconds(100)]
        configuration.oxend.pauses = [.milliseconds(100)]
        configure(&configuration)
        let (events, log) = (events, log)
        let monitor = SubscriptionMonitor(
            configuration, sodium: sodium, entries: store, receiver: inbox,
            logger: log.logger, count: { events.add($0) })
        self.monitor = monitor
        running = Task { try await monitor.run() }
    }

    deinit {
        running.cancel()
    }

    /// Waits until `count` servers are connected.
    func connected(_ count: Int) async throws {
        try await eventually { monitor.figures.connectedServers == count }
    }

    func stop() async throws {
        running.cancel()
        try await running.value
        #expect(network.peer.said("fault").isEmpty, "\(network.peer.said("fault"))")
    }

    /// A new account that belongs to a swarm in a map with these swarms, or to the only one.
    func client(in swarm: UInt64 = 1, of swarms: [UInt64] = [1]) throws -> SessionClient {
        let ring = SwarmRing(swarms)
        for _ in 0..<10_000 {
            if let client = SessionClient(sodium: sodium), ring.swarm(at: client.account.swarmPosition) == swarm { return client }
        }
        throw CocoaError(.featureUnsupported)
    }

    /// A new account for which the first server was asked.
    func monitoredClient() async throws -> SessionClient {
        let client = try client()
        subscribe(client)
        try await asked(0, client)
        return client
    }

    /// Subscribes a device: stores its entry, and informs the monitor.
    @discardableResult
    func subscribe(_ client: SessionClient, signedAt: Int64 = 1_700_000_000) -> MonitoredSubscription {
        let id = lastID.withLock { last in
            last += 1
            return SubscriptionID(rawValue: last)
        }
        let subscription = MonitoredSubscription(id: id, account: client.account, entryByteCount: 0)
        return renew(subscription, client, signedAt: signedAt)
    }

    @discardableResult
    func renew(_ subscription: MonitoredSubscription, _ client: SessionClient, signedAt: Int64) -> MonitoredSubscription {
        let entry = client.monitorEntry(of: SessionClient.Device(token: "token"), at: signedAt)
        store.set(subscription.id, entry)
        let made = MonitoredSubscription(id: subscription.id, account: client.account, entryByteCount: entry.bytes.count)
        monitor.apply(.set(made))
        return made
    }

    func unsubscribe(_ subscription: MonitoredSubscription) {
        store.set(subscription.id, nil)
        monitor.apply(.remove(subscription.id))
    }

    /// Waits until a server has answered a request for an account with an errcode.
    func asked(_ index: Int, _ client: SessionClient, errcode: Int = 0, times: Int = 1) async throws {
        try await eventually { network.entryCount(index, client.account, errcode: errcode) >= times }
    }

    /// Lets a server report a message, and waits until it is delivered.
    func received(_ index: Int, _ client: SessionClient, _ name: String) async throws {
        try network.report(index, client.account, name)
        try await eventually { inbox.hashes.contains(PythonNetwork.hash(name)) }
    }

    /// Lets a server that may not be connected yet report messages until one is delivered.
    func receivedInTheEnd(_ index: Int, _ client: SessionClient) async throws {
        let attempt = Mutex(0)
        try await eventually {
            let number = attempt.withLock { number in
                defer { number += 1 }
                return number
            }
            if number.isMultiple(of: 50) { try network.report(index, client.account, "attempt-\(number)") }
            return inbox.messages.contains { $0.account == client.account }
        }
    }

    /// Waits until `count` messages were dropped for a reason.
    func dropped(_ reason: SessionDropReason, _ count: Int = 1) async throws {
        try await eventually { events.dropped(reason) >= count }
    }
}

/// A fake of the store's entries.
final class StoredEntries: MonitorEntrySource {
    struct Unreadable: Error {}

    private struct State {
        var entries: [SubscriptionID: MonitorEntry] = [:]
        var ended: Set<SubscriptionID> = []
        var isReadable = true
        var reads = 0
    }

    private let state = Mutex(State())

    var reads: Int { state.withLock { $0.reads } }

    func set(_ id: SubscriptionID, _ entry: MonitorEntry?) { state.withLock { $0.entries[id] = entry } }
    /// Unlike one whose entry is missing, an ended subscription is known to have ended.
    func end(_ id: SubscriptionID) { state.withLock { _ = $0.ended.insert(id) } }
    func setReadable(_ isReadable: Bool) { state.withLock { $0.isReadable = isReadable } }

    func entries(of ids: [SubscriptionID]) async throws -> (found: [SubscriptionID: MonitorEntry], ended: [SubscriptionID]) {
        try state.withLock { state in
            state.reads += 1
            guard state.isReadable else { throw Unreadable() }
            let (ended, others) = (ids.filter(state.ended.contains), ids.filter { !state.ended.contains($0) })
            return (Dictionary(uniqueKeysWithValues: others.compactMap { id in state.entries[id].map { (id, $0) } }), ended)
        }
    }
}

/// A receiver that accepts messages while it is open.
final class Inbox: SessionMessageReceiver {
    private struct State {
        var messages: [NotifyMessage] = []
        var isOpen = true
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    var messages: [NotifyMessage] { state.withLock { $0.messages } }
    var hashes: [String] { messages.map(\.hash) }
    var isBusy: Bool { state.withLock { !$0.waiting.isEmpty } }

    func close() { state.withLock { $0.isOpen = false } }

    func open() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            state.isOpen = true
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func settle() async {}

    func take(_ messages: [ReportedMessage]) async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
        // Data is not kept, because a test may receive a lot.
        let kept = messages.map(\.message).map {
            NotifyMessage(
                account: $0.account, hash: $0.hash, namespace: $0.namespace, storedAt: $0.storedAt, expiresAt: $0.expiresAt, data: nil)
        }
        state.withLock { $0.messages += kept }
    }
}

/// The counted events.
final class EventCounts: Sendable {
    private let counts = Mutex<[MonitorEvent: Int]>([:])
    private let askedCount = Mutex(0)

    func add(_ event: MonitorEvent) {
        if case .asked(let count) = event { askedCount.withLock { $0 += count } }
        counts.withLock { $0[event, default: 0] += 1 }
    }

    func count(_ event: MonitorEvent) -> Int { counts.withLock { $0[event] ?? 0 } }
    func dropped(_ reason: SessionDropReason) -> Int { count(.dropped(reason)) }
    var asked: Int { askedCount.withLock { $0 } }
}
