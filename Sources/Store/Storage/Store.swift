/// Keeps rows, and tells when they are durable. An engine is a type of its own: SQLite's is `SQLiteStore`.
///
/// - Commands take effect in the order in which they were submitted, and each sees what those before it changed.
/// - A command succeeds or fails on its own, whatever it shares a transaction with. Of one that fails nothing stays.
/// - When a completion runs, what the commands changed is durable.
package protocol Store: AnyObject, Sendable {
    /// Encrypts what is secret in rows.
    var sealer: Sealer { get }

    /// The commands have their place in the order of commits when this returns.
    ///
    /// - Parameter completion: gets a result for each command once all is durable. Runs on a thread of the store: it must be short.
    func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void)

    /// Runs `body` once everything that was submitted before is durable or has failed: at once, or on a thread of the store, where it must
    /// be short.
    func afterCommits(_ body: @escaping @Sendable () -> Void)

    /// Under load, transactions begin so far apart on average, and hold what came meanwhile. Zero: as soon as the one before has ended.
    func paceCommits(_ interval: Duration)

    /// Carries out commands that change nothing, on one snapshot. On the calling thread, which is held up for as long as the disk is: never
    /// one of the cooperative pool's.
    ///
    /// - Throws: ``StoreError`` when there is no snapshot to be had; what goes wrong with one of the commands is its result.
    func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>]

    /// Hands over rows one after the other until `visit` returns false, without holding all of them. Blocks as ``readEach(_:)`` does.
    ///
    /// - Throws: ``StoreError``
    func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError)

    /// Runs `body`, which may read, on one of the store's own threads.
    func onReader(_ body: @escaping @Sendable () -> Void)

    /// Why the store can't be written or read at present; nil when it can.
    var failure: String? { get }
    /// On disk.
    var byteCount: Int { get }

    /// To be called every few seconds: looks after files and connections, and again at what could not be read. What it finds is ``failure``.
    func maintain() async
    /// The process ends soon: a commit is not waited for any more of which nobody can tell whether it took place.
    func stopWaiting()
    /// Finishes what was submitted.
    func close() throws
}

extension Store {
    /// Nothing, where a commit's outcome is always known.
    package func stopWaiting() {}
    /// Nothing, in an engine that no other node uses.
    package func paceCommits(_ interval: Duration) {}
}

extension Store {
    /// Returns once what the command changed is durable.
    ///
    /// - Throws: ``StoreError``
    @discardableResult
    package func commit<Outcome>(_ command: StoreCommand<Outcome>) async throws(StoreError) -> Outcome {
        try await commitEach([command])[0].get()
    }

    /// Returns once all is durable. Each command succeeds or fails on its own.
    package func commitEach<Outcome>(_ commands: [StoreCommand<Outcome>]) async -> [Result<Outcome, StoreError>] {
        await withCheckedContinuation { continuation in
            submit(commands) { continuation.resume(returning: $0) }
        }
    }

    /// In its place in the order of commits, without waiting: for what may be lost in a crash.
    package func enqueue(_ command: StoreCommand<Void>) {
        submit([command]) { _ in }
    }

    /// Returns once everything that was submitted before is durable or has failed.
    package func settle() async {
        _ = await commitEach([StoreCommand<Void>]())
    }

    /// Blocks as ``readEach(_:)`` does.
    ///
    /// - Throws: ``StoreError``
    package func read<Outcome>(_ command: StoreCommand<Outcome>) throws(StoreError) -> Outcome {
        try readEach([command])[0].get()
    }

    /// As ``read(_:)``, on one of the store's threads.
    ///
    /// - Throws: ``StoreError``
    package func fetch<Outcome>(_ command: StoreCommand<Outcome>) async throws(StoreError) -> Outcome {
        try await onReader { store throws(StoreError) in try store.read(command) }
    }

    /// Runs `body`, which may read and scan, on one of the store's own threads.
    ///
    /// - Throws: ``StoreError``
    package func onReader<Outcome: Sendable>(
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
