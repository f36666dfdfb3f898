import Synchronization

/// Commands that were submitted together.
package protocol CommitBatch: Sendable {
    var count: Int { get }
    /// A command that stores its outcome for ``complete()``. May be executed again after its transaction failed.
    func command(_ index: Int) -> StoreCommand<Void>
    /// Reports that a command failed and left no changes.
    func fail(_ index: Int, _ error: any Error)
    /// Called when every command is durable or has failed, on the writer's thread, which other batches wait for.
    func complete()
}

/// The batches that wait for the one writer of a store. All of them become its next group; batches that arrive meanwhile wait for the one after it.
package struct WaitingBatches: Sendable {
    private var batches: [any CommitBatch] = []
    /// Whether the writer has work or is about to ask for it.
    package private(set) var isRunning = false

    package init() {}

    /// Callbacks for the end of earlier commits need no transaction.
    package var hasCommands: Bool { batches.contains { $0.count > 0 } }

    /// - Returns: whether the writer must be started.
    package mutating func add(_ batch: any CommitBatch) -> Bool {
        batches.append(batch)
        defer { isRunning = true }
        return !isRunning
    }

    /// The next group; nil when nothing waits, with which the writer stops.
    package mutating func takeGroup() -> [any CommitBatch]? {
        isRunning = !batches.isEmpty
        defer { batches = [] }
        return isRunning ? batches : nil
    }
}

/// Commands with outcomes of one type.
package final class CommandBatch<Outcome: Sendable>: CommitBatch {
    private let commands: [StoreCommand<Outcome>]
    private let explain: @Sendable (any Error) -> StoreError
    private let completion: @Sendable ([Result<Outcome, StoreError>]) -> Void
    private let results: Mutex<[Result<Outcome, StoreError>?]>

    /// - Parameters:
    ///   - explain: the engine's explanation of an error.
    ///   - completion: see ``Store/submit(_:completion:)``.
    package init(
        _ commands: [StoreCommand<Outcome>], explain: @escaping @Sendable (any Error) -> StoreError,
        completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        (self.commands, self.explain, self.completion) = (commands, explain, completion)
        results = Mutex(Array(repeating: nil, count: commands.count))
    }

    package var count: Int { commands.count }

    package func command(_ index: Int) -> StoreCommand<Void> {
        commands[index].map { [self] outcome in results.withLock { $0[index] = .success(outcome) } }
    }

    package func fail(_ index: Int, _ error: any Error) {
        let error = explain(error)
        results.withLock { $0[index] = .failure(error) }
    }

    package func complete() {
        // One result for each command: callers match them by position.
        let results = results.withLock(\.self)
        completion(results.map { $0 ?? .failure(StoreError(code: .unavailable, message: "a change was not executed")) })
    }
}
