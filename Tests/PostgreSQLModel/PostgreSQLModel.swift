import Core
import Dispatch
package import Storage
import Synchronization

/// A model of PostgreSQL as the store of a node: a server that keeps all that it has committed, behind a connection that fails. Another
/// engine, which works throughout, stands for the server; this type does what `StorePostgreSQL` does about failures.
///
///     group ──▶ COMMIT ──(reply)──▶ complete
///      ▲  ▲       ├──(refused)─────────▶ again, up to 10 times
///      │  └───────┤
///      │          ├──(unreachable)─────▶ once more; then all fail, and others for a moment
///      └─(no)─────┴──(no reply)────────▶ look up whether it was committed, as soon as a server answers ──(yes)──▶ complete
///
/// Nothing here blocks, so that it works in virtual time too.
package final class PostgreSQLModel: TransferableStore {
    /// The outcome of a transaction.
    package enum Fate: Hashable, Sendable {
        case committed
        /// It is rolled back, and the server says so.
        case refused
        /// The reply to `COMMIT` is lost.
        case unanswered(isCommitted: Bool)
        /// It does not begin.
        case unreachable
    }

    /// The server's and the network's decisions.
    package struct Server: Sendable {
        let fate: @Sendable () -> Fate
        let isReachable: @Sendable () -> Bool
        /// Called after each transaction that was applied.
        let applied: @Sendable () -> Void

        package init(
            fate: @escaping @Sendable () -> Fate, isReachable: @escaping @Sendable () -> Bool, applied: @escaping @Sendable () -> Void = {}
        ) {
            (self.fate, self.isReachable, self.applied) = (fate, isReachable, applied)
        }
    }

    /// Commands that share a transaction.
    private final class Group: Sendable {
        let parts: [any Part]
        let failures = Mutex((lost: 0, refused: 0))

        init(_ parts: [any Part]) { self.parts = parts }

        var hasCommands: Bool { parts.contains { !$0.isEmpty } }
    }

    private struct State {
        var waiting: [any Part] = []
        var isRunning = false
        var isStopping = false
        /// The group that waits for another attempt; nil while one is being applied.
        var retried: (group: Group, isCommitted: Bool)?
        var failedAttempts = 0
        /// Until then, commands fail without an attempt.
        var suspendedUntil: Instant?
        var health = StoreHealth(subject: "PostgreSQL", remedy: "look at the server", responseTimeout: .seconds(5))
    }

    private static let repetitionLimit = 10
    private static let retryPause = ExponentialBackoff(initial: .milliseconds(200), maximum: .seconds(2))
    private static let unreachable = StoreError(code: .unavailable, message: "the modelled PostgreSQL can't be reached")
    private static let refused = StoreError(code: .unavailable, message: "the modelled PostgreSQL refuses all transactions")
    private static let unknown = StoreError(code: .unavailable, message: "whether the last changes were kept is not known")

    private let base: any TransferableStore
    private let server: Server
    private let isShared: Bool
    private let readers = ReaderThreads()
    private let state = Mutex(State())
    /// Not named like the queues of stores, which are slow when the disk is: a transaction waits for the disk of the server once.
    private let queue = DispatchQueue(label: "waku-push.postgresql-model")

    /// - Parameters:
    ///   - base: holds the rows.
    ///   - isShared: whether other nodes use it too, each by a model of its own.
    package init(_ base: any TransferableStore, _ server: Server, isShared: Bool = false) {
        (self.base, self.server, self.isShared) = (base, server, isShared)
    }

    // MARK: Commands

    package func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        let part = Commands(commands, completion)
        let mustStart = state.withLock { state in
            state.waiting.append(part)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { queue.async { self.begin() } }
    }

    package func afterCommits(_ body: @escaping @Sendable () -> Void) {
        if state.withLock({ !$0.isRunning }) { return body() }
        submit([StoreCommand<Void>]()) { _ in body() }
    }

    private func nextGroup() -> Group? {
        state.withLock { state in
            state.isRunning = !state.waiting.isEmpty
            defer { state.waiting = [] }
            return state.isRunning ? Group(state.waiting) : nil
        }
    }

    private func begin() {
        guard let group = nextGroup() else { return }
        guard group.hasCommands else { return finish(group) }
        let isSuspended = state.withLock { state in state.suspendedUntil.map { $0 > .now } ?? false }
        if isSuspended { fail(group, Self.unreachable) } else { attempt(group) }
    }

    private func attempt(_ group: Group) {
        state.withLock { $0.health.committing(at: .now) }
        switch server.fate() {
        case .committed: apply(group) { self.committed(group) }
        case .refused: repeatLater(group)
        case .unanswered(true): apply(group) { self.lookUp(group, isCommitted: true, failures: 0) }
        case .unanswered(false): lookUp(group, isCommitted: false, failures: 0)
        case .unreachable:
            let lost = group.failures.withLock { failures in
                failures.lost += 1
                return failures.lost
            }
            if lost < 2 { return attempt(group) }
            state.withLock { state in
                state.failedAttempts += 1
                state.suspendedUntil = .now + Self.retryPause.delay(afterFailures: state.failedAttempts, jitter: 1)
            }
            fail(group, Self.unreachable)
        }
    }

    private func repeatLater(_ group: Group) {
        let refused = group.failures.withLock { failures in
            failures.refused += 1
            return failures.refused
        }
        guard refused < Self.repetitionLimit else { return fail(group, Self.refused) }
        wait(group, isCommitted: false) {
            self.queue.async(execute: $0)
        } then: {
            self.attempt(group)
        }
    }

    private func lookUp(_ group: Group, isCommitted: Bool, failures: Int) {
        if server.isReachable() { return isCommitted ? committed(group) : repeatLater(group) }
        let isStopping = state.withLock { state in
            state.health.committed(Self.unreachable.message)
            state.health.committing(at: .now)
            return state.isStopping
        }
        if isStopping { return fail(group, Self.unknown) }
        let pause = Self.retryPause.delay(afterFailures: failures + 1, jitter: 1)
        wait(group, isCommitted: isCommitted) {
            self.queue.asyncAfter(deadline: .now() + .milliseconds(Int(pause / .milliseconds(1))), execute: $0)
        } then: {
            self.lookUp(group, isCommitted: isCommitted, failures: failures + 1)
        }
    }

    /// Continues with a group later, unless ``close()`` has taken it.
    private func wait(
        _ group: Group, isCommitted: Bool, _ later: (@escaping @Sendable () -> Void) -> Void, then: @escaping @Sendable () -> Void
    ) {
        state.withLock { $0.retried = (group, isCommitted) }
        later {
            let isWaiting = self.state.withLock { state in
                guard state.retried?.group === group else { return false }
                state.retried = nil
                return true
            }
            if isWaiting { then() }
        }
    }

    private func apply(_ group: Group, then: @escaping @Sendable () -> Void) {
        let open = Mutex(group.parts.count)
        for part in group.parts {
            part.apply(to: base) {
                let isLast = open.withLock { open in
                    open -= 1
                    return open == 0
                }
                guard isLast else { return }
                self.server.applied()
                self.queue.async(execute: then)
            }
        }
    }

    private func committed(_ group: Group) {
        state.withLock { state in
            (state.failedAttempts, state.suspendedUntil) = (0, nil)
            state.health.committed(nil)
        }
        finish(group)
    }

    private func fail(_ group: Group, _ error: StoreError) {
        state.withLock { $0.health.committed(error.message) }
        for part in group.parts { part.fail(error) }
        finish(group)
    }

    private func finish(_ group: Group) {
        for part in group.parts { part.complete() }
        queue.async { self.begin() }
    }

    // MARK: Reading

    private func reach() throws(StoreError) {
        let isReachable = server.isReachable()
        state.withLock { $0.health.checkpointed(isReachable ? nil : Self.unreachable.message) }
        if !isReachable { throw Self.unreachable }
    }

    package func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
        try reach()
        return try base.readEach(commands)
    }

    package func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) {
        try reach()
        try base.scan(read, visit)
    }

    package func onReader(_ body: @escaping @Sendable () -> Void) { readers.run(body) }

    // MARK: Life

    package var failure: String? { state.withLock { $0.health.failure(at: .now) } ?? base.failure }
    package var byteCount: Int { base.byteCount }
    package var sealer: Sealer { base.sealer }
    package var tables: [Table] { base.tables }
    package func requireNothingAdded() throws(StoreError) { try base.requireNothingAdded() }
    package func lastIDs() throws(StoreError) -> [String: Int64] { try base.lastIDs() }
    package func continueIDs(after last: [String: Int64]) throws(StoreError) { try base.continueIDs(after: last) }

    package func maintain() async {
        try? reach()
        _ = await commitEach([StoreCommand<Void>.done(())])
        if !isShared { await base.maintain() }
    }

    package func recheck() async { if !isShared { await base.recheck() } }

    package func stopWaiting() { state.withLock { $0.isStopping = true } }

    /// Completes what was submitted if the server can be reached; otherwise it fails.
    package func close() throws {
        stopWaiting()
        queue.sync {
            let retried = state.withLock { state in
                defer { state.retried = nil }
                return state.retried
            }
            if let (group, isCommitted) = retried { end(group, isCommitted: isCommitted) }
            while let group = nextGroup() { end(group, isCommitted: false) }
        }
        if !isShared { try base.close() }
    }

    private func end(_ group: Group, isCommitted: Bool) {
        for part in group.parts {
            if isCommitted || !server.isReachable() {
                if !isCommitted { part.fail(Self.unknown) }
                part.complete()
            } else {
                part.apply(to: base) { [self] in
                    server.applied()
                    // The threads of a shared server complete nothing of a node.
                    if isShared { queue.async { part.complete() } } else { part.complete() }
                }
            }
        }
    }
}

/// Commands that were submitted together.
private protocol Part: Sendable {
    var isEmpty: Bool { get }
    func apply(to base: any Store, then: @escaping @Sendable () -> Void)
    func fail(_ error: StoreError)
    func complete()
}

private final class Commands<Outcome: Sendable>: Part {
    private let commands: [StoreCommand<Outcome>]
    private let completion: @Sendable ([Result<Outcome, StoreError>]) -> Void
    private let results = Mutex<[Result<Outcome, StoreError>]>([])

    init(_ commands: [StoreCommand<Outcome>], _ completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void) {
        (self.commands, self.completion) = (commands, completion)
    }

    var isEmpty: Bool { commands.isEmpty }

    func apply(to base: any Store, then: @escaping @Sendable () -> Void) {
        base.submit(commands) { found in
            self.results.withLock { $0 = found }
            then()
        }
    }

    func fail(_ error: StoreError) { results.withLock { $0 = commands.map { _ in .failure(error) } } }
    func complete() { completion(results.withLock(\.self)) }
}
