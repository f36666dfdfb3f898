import Primitives
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

extension StatusPushClient {
    /// Stays attached until cancelled: what is to be registered, advertised and sent goes out, answers come in.
    ///
    /// Cancelling leaves everything as a kill would: what was on its way goes on at the next start. One at a time.
    public func run() async {
        let (bell, id) = makeBell()
        defer { removeBell(id) }
        startMachine()
        await withDiscardingTaskGroup { group in
            group.addTask { [self] in
                await relay.run { [self] batch in
                    for received in batch { take(received.message) }
                }
            }
            group.addTask { [self] in await pump(bell) }
        }
    }

    private func startMachine() {
        core.withLock { core in
            let now = core.now
            let isFirst = !core.isStarted
            core.isStarted = true
            core.add(isFirst ? core.machine.start(at: now) : core.machine.wake(at: now))
        }
    }

    /// Lets the machine do something; what it wants is kept and done by ``run()``.
    @discardableResult
    func turn<R>(_ body: (inout ClientMachine, Timestamp) -> (ClientOutput, R)) -> R {
        let (result, bells) = core.withLock { core in
            let (output, result) = body(&core.machine, core.now)
            core.add(output)
            return (result, Array(core.bells.values))
        }
        for bell in bells { bell.yield() }
        return result
    }

    func turn(_ body: (inout ClientMachine, Timestamp) -> ClientOutput) {
        turn { (body(&$0, $1), ()) }
    }

    // MARK: Bells

    func makeBell() -> (stream: AsyncStream<Void>, id: Int) {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = core.withLock { core in
            let id = core.makeID()
            core.bells[id] = continuation
            return id
        }
        continuation.yield()
        return (stream, id)
    }

    func removeBell(_ id: Int) {
        core.withLock { $0.bells.removeValue(forKey: id) }?.finish()
    }

    /// Waits until `test` says something of the machine, and what led to that was kept.
    ///
    /// - Returns: nil when the time is over, or the task was cancelled.
    func wait<R: Sendable>(_ timeout: Duration?, _ test: @escaping @Sendable (ClientMachine) -> R?) async -> R? {
        let (bell, id) = makeBell()
        defer { removeBell(id) }
        return await withTaskGroup(of: R?.self) { group in
            group.addTask { [self] in
                var outcome: (result: R, outputCount: Int)?
                for await _ in bell {
                    if outcome == nil {
                        outcome = core.withLock { core in test(core.machine).map { ($0, core.outputCount) } }
                    }
                    if let outcome, core.withLock(\.keptCount) >= outcome.outputCount { return outcome.result }
                }
                return nil
            }
            if let timeout {
                group.addTask {
                    try? await Task.sleep(for: timeout)
                    return nil
                }
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    // MARK: The pump

    /// Keeps changes before it does what came with them, in order, and wakes the machine when it wants that.
    private func pump(_ bell: AsyncStream<Void>) async {
        await withDiscardingTaskGroup { group in
            var failures = 0
            var unkept: [String: [UInt8]?] = [:]
            var undone: [ClientAction] = []
            var alarm: (time: Timestamp, task: Task<Void, Never>)?
            defer {
                alarm?.task.cancel()
                group.cancelAll()
            }
            for await _ in bell {
                let (outputs, outputCount) = core.withLock { core in
                    defer { core.outputs = [] }
                    return (core.outputs, core.outputCount)
                }
                for output in outputs {
                    for (key, record) in output.changes {
                        // Records are values without anything that JSON can't hold.
                        unkept[RecordCoding.name(of: key)] = .some(record.flatMap { try? RecordCoding.encode($0) })
                    }
                    undone += output.actions
                }
                do throws(ClientStoreError) {
                    if !unkept.isEmpty { try await store.commit(unkept) }
                    failures = 0
                    unkept = [:]
                    if noteKept(outputCount) { ring() }
                    for action in undone { begin(action, in: &group) }
                    undone = []
                } catch {
                    // Nothing is sent that could be forgotten.
                    failures += 1
                    if failures == 1, !Task.isCancelled { report(.storeFailed(reason: error.message)) }
                    try? await Task.sleep(
                        for: ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(60)).delay(
                            afterFailures: failures, jitter: 1))
                    ring()
                }
                let next = core.withLock { $0.machine.nextWakeUp }
                guard next != alarm?.time else { continue }
                alarm?.task.cancel()
                alarm = next.map { time in (time, wakeUp(at: time)) }
            }
        }
    }

    /// - Returns: Whether that is news.
    private func noteKept(_ outputCount: Int) -> Bool {
        core.withLock { core in
            defer { core.keptCount = outputCount }
            return core.keptCount != outputCount
        }
    }

    private func ring() {
        for bell in core.withLock({ Array($0.bells.values) }) { bell.yield() }
    }

    private func wakeUp(at time: Timestamp) -> Task<Void, Never> {
        Task { [weak self] in
            guard let pause = self.map({ client in time.since(client.core.withLock(\.now)) }) else { return }
            do { try await Task.sleep(for: max(pause, .zero)) } catch { return }
            self?.turn { $0.wake(at: $1) }
        }
    }

    // MARK: Events

    /// What happens from now on. Whoever does not keep up misses the oldest of more than a thousand.
    public var events: AsyncStream<PushClientEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: PushClientEvent.self, bufferingPolicy: .bufferingNewest(1000))
        let id = core.withLock { core in
            let id = core.makeID()
            core.listeners[id] = continuation
            return id
        }
        continuation.onTermination = { [weak self] _ in self?.core.withLock { $0.listeners[id] = nil } }
        return stream
    }

    func report(_ event: PushClientEvent) {
        for listener in core.withLock({ Array($0.listeners.values) }) { listener.yield(event) }
    }
}
