import Core
import Synchronization
import Waku

/// Runs a client's machine: stores its changes before performing the actions that came with them, in order, and wakes the machine on time.
final class MachineRunner<Version: ClientVersion>: Sendable {
    typealias Machine = PushClientMachine<Version>
    typealias Output = Machine.Output

    private struct State {
        var machine: Machine
        let clock: SteadyClock
        /// Changes and actions that no commit was made for yet. A cancelled run leaves actions here, and changes if they could not be stored.
        var pending = Output()
        var listeners: [Int: AsyncStream<PushClientEvent>.Continuation] = [:]
        /// Added by ``run(_:deliver:perform:)``, and by callers that wait for an outcome. Those of a record are signalled when it changed or was
        /// stored, the others after each event: with thousands of callers, most events concern only one.
        var observers: [RecordKey?: [Int: AsyncStream<Void>.Continuation]] = [:]
        /// The records in the commit under way.
        var storing: Set<RecordKey> = []
        var isStarted = false
        var isRunning = false
        /// The number of outputs so far. `storedCount` is how many of them were stored.
        var outputCount = 0
        var storedCount = 0
        var nextID = 0

        var now: Timestamp { clock.time(at: SteadyClock.uptime) }

        mutating func add(_ output: Output) {
            guard !output.isEmpty else { return }
            pending.changes.merge(output.changes) { _, new in new }
            pending.actions += output.actions
            outputCount += 1
        }

        /// Takes the pending output for a commit. Output during the commit becomes pending again, so that each commit stores only what is new.
        mutating func takePending() -> (output: Output, outputCount: Int) {
            defer { pending = Output() }
            storing = Set(pending.changes.keys)
            return (pending, outputCount)
        }

        /// Makes output pending again that was not stored or performed. Later changes of the same records replace it.
        mutating func putBack(_ output: Output) {
            storing = []
            pending.changes.merge(output.changes) { new, _ in new }
            pending.actions = output.actions + pending.actions
        }

        mutating func noteStored(_ outputCount: Int) {
            storing = []
            storedCount = outputCount
        }

        /// Whether the first outputs are stored, or at least all changes of this record.
        func isStored(_ outputCount: Int, _ key: RecordKey?) -> Bool {
            storedCount >= outputCount || key.map { !storing.contains($0) && !pending.changes.keys.contains($0) } ?? false
        }

        func observers(of keys: Set<RecordKey>) -> [AsyncStream<Void>.Continuation] {
            (keys.map(Optional.some) + [nil]).flatMap { key in observers[key].map { Array($0.values) } ?? [] }
        }

        mutating func makeID() -> Int {
            defer { nextID += 1 }
            return nextID
        }
    }

    private let store: any ClientStore
    private let state: Mutex<State>

    /// - Parameters:
    ///   - records: The store's records.
    ///   - make: Makes the machine that continues from them.
    init(_ records: [Machine.Record], in store: any ClientStore, make: (_ now: Timestamp) -> Machine) {
        self.store = store
        let kept = RecordsByKind(records)
        let clock = SteadyClock(kept: kept.time, lead: kept.own?.steadyLead ?? .zero, clock: .now(), uptime: SteadyClock.uptime)
        var machine = make(clock.time(at: SteadyClock.uptime))
        machine.follow(clock)
        state = Mutex(State(machine: machine, clock: clock))
    }

    deinit {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.finish() }
    }

    // MARK: The machine

    /// Waits a moment until ``run(_:deliver:perform:)`` runs: without it nothing is stored, sent or received. A task that was started together
    /// with the one that runs the client may come first.
    ///
    /// - Throws: ``PushClientError`` with `notRunning` or `cancelled`
    func waitUntilRunning() async throws(PushClientError) {
        if state.withLock(\.isRunning) { return }
        let (signals, id) = addObserver()
        defer { removeObserver(id) }
        let isRunning = await withTimeout(.seconds(2)) { [self] in
            for await _ in signals where state.withLock(\.isRunning) { return true }
            return false
        }
        if isRunning == true { return }
        throw Task.isCancelled ? .cancelled : .notRunning
    }

    func read<R>(_ body: (Machine, _ now: Timestamp) -> R) -> R {
        state.withLock { body($0.machine, $0.now) }
    }

    /// Passes an event to the machine; ``run(_:deliver:perform:)`` stores and performs its output.
    @discardableResult
    func turn<R>(_ event: (inout Machine, Timestamp) -> R) -> R {
        let (result, observers) = state.withLock { state in
            let now = state.now
            let result = event(&state.machine, now)
            let output = state.machine.settle(at: now)
            state.add(output)
            return (result, state.observers(of: output.affected.reduce(into: Set(output.changes.keys)) { $0.insert(.registrant($1)) }))
        }
        for observer in observers { observer.yield() }
        return result
    }

    /// Waits until `test` returns a value for the machine and the changes before it, or at least those of the record, were stored.
    ///
    /// - Parameters:
    ///   - key: The record that `test` depends on; nil if it depends on others, too.
    ///   - whileRunning: Whether to return when ``run(_:deliver:perform:)`` ends.
    /// - Returns: nil after the timeout, when the task was cancelled, or when nothing runs any more.
    func wait<R: Sendable>(
        _ timeout: Duration?, about key: RecordKey? = nil, whileRunning: Bool = false,
        _ test: @escaping @Sendable (Machine, _ now: Timestamp) -> R?
    ) async -> R? {
        let (signals, id) = addObserver(of: key)
        defer { removeObserver(id, of: key) }
        return await withTimeout(timeout) { [self] in
            var outcome: (result: R, outputCount: Int)?
            for await _ in signals {
                if outcome == nil { outcome = state.withLock { state in test(state.machine, state.now).map { ($0, state.outputCount) } } }
                if let outcome, state.withLock({ $0.isStored(outcome.outputCount, key) }) { return outcome.result }
                if whileRunning, !state.withLock(\.isRunning) { return nil }
            }
            return nil
        }
    }

    // MARK: Running

    /// Runs until cancelled. If another call is running, waits for it to end first.
    func run(
        _ relay: any Relay, deliver: @escaping @Sendable (WakuMessage) -> Void,
        perform: @escaping @Sendable (Machine.Action, inout DiscardingTaskGroup) -> Void
    ) async {
        let (signals, id) = addObserver()
        defer { removeObserver(id) }
        guard await waitForTurn(signals) else { return }
        defer { end() }
        state.withLock { state in
            let isAgain = state.isStarted
            state.isStarted = true
            if isAgain { state.pending.actions.removeAll { !Machine.outlivesRun($0) } }
            let now = state.now
            state.machine.start(at: now)
            state.add(state.machine.settle(at: now))
        }
        notifyObservers()
        await withDiscardingTaskGroup { group in
            group.addTask {
                await relay.run { batch in
                    for received in batch { deliver(received.message) }
                }
            }
            group.addTask { [self] in await pump(signals, perform) }
            group.addTask { [self] in
                var watch = ReceptionWatch(at: SteadyClock.uptime)
                while (try? await Task.sleep(for: ReceptionWatch.period)) != nil {
                    guard watch.note(isAttached: relay.state == .attached, at: SteadyClock.uptime) else { continue }
                    turn { machine, _ in machine.messagesMissed() }
                }
            }
        }
        await storePending()
    }

    /// - Returns: false when cancelled before the other call's run ended.
    private func waitForTurn(_ signals: AsyncStream<Void>) async -> Bool {
        for await _ in signals {
            let isFree = state.withLock { state in
                defer { state.isRunning = true }
                return !state.isRunning
            }
            if isFree { return true }
        }
        return false
    }

    private func end() {
        state.withLock { $0.isRunning = false }
        notifyObservers()
    }

    private func pump(_ signals: AsyncStream<Void>, _ perform: @Sendable (Machine.Action, inout DiscardingTaskGroup) -> Void) async {
        await withDiscardingTaskGroup { group in
            var failures = 0
            var alarm: (time: Timestamp, task: Task<Void, Never>)?
            defer {
                alarm?.task.cancel()
                group.cancelAll()
            }
            for await _ in signals {
                let (output, outputCount) = state.withLock { $0.takePending() }
                do throws(ClientStoreError) {
                    try await commit(output.changes)
                    failures = 0
                    noteStored(output, outputCount)
                    for action in output.actions { perform(action, &group) }
                } catch {
                    // Nothing is sent before the state behind it is stored.
                    state.withLock { $0.putBack(output) }
                    failures += 1
                    if failures == 1, !Task.isCancelled { report(.storeFailed(reason: error.message)) }
                    try? await Task.sleep(
                        for: ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(60)).delay(
                            afterFailures: failures, jitter: 1))
                    notifyObservers()
                }
                let next = state.withLock { $0.machine.nextWakeUp }
                guard next != alarm?.time else { continue }
                alarm?.task.cancel()
                alarm = next.map { time in (time, wakeUp(at: time)) }
            }
        }
    }

    private func commit(_ changes: [RecordKey: Machine.Record?]) async throws(ClientStoreError) {
        guard !changes.isEmpty else { return }
        // Encoding can't fail: records hold only values that JSON can represent.
        var records: [String: [UInt8]?] = [:]
        for (key, record) in changes {
            records[Machine.Record.name(of: key)] = .some(record.flatMap { try? $0.encoded() })
        }
        try await store.commit(records)
    }

    /// Stores the changes that a cancelled run left: another client may be given the store. Stores may refuse commits of cancelled tasks, so a task
    /// of its own makes this one.
    private func storePending() async {
        await Task { [self] in
            let (output, outputCount) = state.withLock { $0.takePending() }
            do throws(ClientStoreError) {
                try await commit(output.changes)
            } catch {
                state.withLock { $0.putBack(output) }
                return report(.storeFailed(reason: error.message))
            }
            state.withLock { state in
                state.noteStored(outputCount)
                state.putBack(Output(actions: output.actions))
            }
        }.value
    }

    private func noteStored(_ output: Output, _ outputCount: Int) {
        let observers = state.withLock { state in
            defer { state.noteStored(outputCount) }
            return state.storedCount == outputCount ? [] : state.observers(of: Set(output.changes.keys))
        }
        for observer in observers { observer.yield() }
    }

    private func wakeUp(at time: Timestamp) -> Task<Void, Never> {
        Task { [weak self] in
            guard let pause = self.map({ runner in time.since(runner.state.withLock(\.now)) }) else { return }
            do { try await Task.sleep(for: max(pause, .zero)) } catch { return }
            self?.turn { $0.wake(at: $1) }
        }
    }

    // MARK: Observers

    private func addObserver(of key: RecordKey? = nil) -> (stream: AsyncStream<Void>, id: Int) {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = state.withLock { state in
            let id = state.makeID()
            state.observers[key, default: [:]][id] = continuation
            return id
        }
        continuation.yield()
        return (stream, id)
    }

    private func removeObserver(_ id: Int, of key: RecordKey? = nil) {
        let observer = state.withLock { state in
            defer { if state.observers[key]?.isEmpty == true { state.observers[key] = nil } }
            return state.observers[key]?.removeValue(forKey: id)
        }
        observer?.finish()
    }

    private func notifyObservers() {
        for observer in state.withLock({ $0.observers.values.flatMap(\.values) }) { observer.yield() }
    }

    // MARK: Events

    /// Events from now on, until this is released. Beyond a thousand unread events, the oldest are dropped.
    var events: AsyncStream<PushClientEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: PushClientEvent.self, bufferingPolicy: .bufferingNewest(1000))
        let id = state.withLock { state in
            let id = state.makeID()
            state.listeners[id] = continuation
            return id
        }
        continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.listeners[id] = nil } }
        return stream
    }

    func report(_ event: PushClientEvent) {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield(event) }
    }
}
