/// Stores rows durably. Each engine is a type of its own: SQLite's is `SQLiteStore`.
///
/// - Commands take effect in the order of submission, and each sees the changes of earlier commands.
/// - A command succeeds or fails on its own, even when it shares a transaction with others. A failed command leaves no changes.
/// - When a completion runs, the changes of its commands are durable.
public protocol Store: AnyObject, Sendable {
    /// Encrypts the secret columns of rows.
    var sealer: Sealer { get }

    /// Submits commands; their place in the commit order is fixed when this returns.
    ///
    /// - Parameter completion: receives a result for each command once all are durable. Runs on a thread of the store: it must be short.
    func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void)

    /// Runs `body` once everything submitted before is durable or has failed: immediately, or on a thread of the store, where it must be short.
    func afterCommits(_ body: @escaping @Sendable () -> Void)

    /// Sets the mean interval between the starts of transactions under load; commands submitted in between share a transaction. Zero: a transaction
    /// starts as soon as the previous one has ended.
    func paceCommits(_ interval: Duration)

    /// Runs read-only commands on one snapshot, on the calling thread, which blocks for as long as the disk does: never call it on the cooperative
    /// thread pool.
    ///
    /// - Throws: ``StoreError`` when no snapshot can be opened; the failure of a single command is that command's result.
    func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>]

    /// Passes rows to `visit` one at a time until it returns false, without holding all of them in memory. Blocks as ``readEach(_:)`` does.
    func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError)

    /// Runs `body`, which may read, on one of the store's own threads.
    func onReader(_ body: @escaping @Sendable () -> Void)

    /// Why the store can't be written or read at present; nil when it can.
    var failure: String? { get }
    /// As ``failure``, without what fails other nodes, too: rows that can't be read, and a full disk on which some commits succeed.
    var outage: String? { get }
    /// Size on disk, in bytes.
    var byteCount: Int { get }

    /// Checks files and connections; ``failure`` has the result. Call every few seconds.
    func maintain() async
    /// After a failed read, reads all rows again, at growing intervals until it succeeds; ``failure`` has the result. Call every few seconds, but not
    /// while another call runs: it takes minutes for a large database. Ends early when the task is cancelled.
    func recheck() async
    /// Stops waiting for commits whose outcome can't be determined. Call shortly before the process exits.
    func stopWaiting()
    /// Completes all submitted commands, then closes the store.
    func close() throws
}

extension Store {
    /// Does nothing: the default, for engines whose ``failure`` ends with the next read.
    public func recheck() async {}
    /// Does nothing: the default, for engines in which a commit's outcome is always known.
    public func stopWaiting() {}
    /// Does nothing: the default, for engines that no other node shares.
    public func paceCommits(_ interval: Duration) {}
    /// Same as ``failure``: the default, for engines that no other node shares.
    public var outage: String? { failure }
}

extension Store {
    /// Returns once the command's changes are durable.
    @discardableResult
    public func commit<Outcome>(_ command: StoreCommand<Outcome>) async throws(StoreError) -> Outcome {
        try await commitEach([command])[0].get()
    }

    /// Returns once all is durable. Each command succeeds or fails on its own.
    public func commitEach<Outcome>(_ commands: [StoreCommand<Outcome>]) async -> [Result<Outcome, StoreError>] {
        await withCheckedContinuation { continuation in
            submit(commands) { continuation.resume(returning: $0) }
        }
    }

    /// The maximum number of rows that one commit deletes: others wait for it.
    static var chunkLimit: Int { 2_000 }

    /// Deletes many rows, some thousand in each commit, until none is left or the task is cancelled.
    ///
    /// - Parameters:
    ///   - count: the maximum number of rows.
    ///   - deletion: deletes rows up to a limit, and returns their number.
    package func commitInChunks(
        atMost count: Int = .max, _ deletion: (_ limit: Int) -> StoreCommand<Int>
    ) async throws(StoreError) {
        var left = count
        while left > 0, !Task.isCancelled {
            let limit = min(left, Self.chunkLimit)
            guard try await commit(deletion(limit)) == limit else { return }
            left -= limit
        }
    }

    /// Submits the command without waiting for it: for changes that a crash may lose.
    public func enqueue(_ command: StoreCommand<Void>) {
        submit([command]) { _ in }
    }

    /// Returns once everything submitted before is durable or has failed.
    public func settle() async {
        _ = await commitEach([StoreCommand<Void>]())
    }

    /// Blocks as ``readEach(_:)`` does.
    public func read<Outcome>(_ command: StoreCommand<Outcome>) throws(StoreError) -> Outcome {
        try readEach([command])[0].get()
    }

    /// As ``read(_:)``, on one of the store's threads.
    public func fetch<Outcome>(_ command: StoreCommand<Outcome>) async throws(StoreError) -> Outcome {
        try await onReader { store throws(StoreError) in try store.read(command) }
    }

    /// Runs `body`, which may read and scan, on one of the store's own threads.
    public func onReader<Outcome: Sendable>(
        _ body: @escaping @Sendable (any Store) throws(StoreError) -> Outcome
    ) async throws(StoreError) -> Outcome {
        let result: Result<Outcome, StoreError> = await withCheckedContinuation { continuation in
            onReader { [self] in
                continuation.resume(returning: Result { () throws(StoreError) in try body(self) })
            }
        }
        return try result.get()
    }
}
