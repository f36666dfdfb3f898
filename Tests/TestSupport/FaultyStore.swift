package import Storage

/// A store whose commands fail as the test says.
package final class FaultyStore: Store {
    /// The error of a command with an outcome of this type; nil: it reaches the store.
    package typealias Fault = @Sendable (_ outcome: Any.Type) -> StoreError?

    private let base: any Store
    private let readFault: Fault
    private let commitFault: Fault
    private let pause: @Sendable () async -> Void

    /// - Parameter pause: runs before the store's own maintenance, and before its recheck.
    package init(
        _ base: any Store, read: @escaping Fault = { _ in nil }, commit: @escaping Fault = { _ in nil },
        pause: @escaping @Sendable () async -> Void = {}
    ) {
        self.base = base
        self.pause = pause
        readFault = read
        commitFault = commit
    }

    package func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
        if let error = readFault(Outcome.self) { throw error }
        return try base.readEach(commands)
    }

    package func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        let errors = commands.map { _ in commitFault(Outcome.self) }
        base.submit(zip(commands, errors).filter { $1 == nil }.map(\.0)) { results in
            var results = results
            completion(errors.map { error in error.map { Result<Outcome, StoreError>.failure($0) } ?? results.removeFirst() })
        }
    }

    package var sealer: Sealer { base.sealer }
    package func afterCommits(_ body: @escaping @Sendable () -> Void) { base.afterCommits(body) }
    package func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) { try base.scan(read, visit) }
    package func onReader(_ body: @escaping @Sendable () -> Void) { base.onReader(body) }
    package var failure: String? { base.failure }
    package var byteCount: Int { base.byteCount }
    package func maintain() async {
        await pause()
        await base.maintain()
    }
    package func recheck() async {
        await pause()
        await base.recheck()
    }
    package func close() throws { try base.close() }
}

extension StoreError {
    package static func ofTest(_ code: Code) -> StoreError { StoreError(code: code, message: "as the test says") }
}
