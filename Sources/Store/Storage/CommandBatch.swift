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
