import Storage

/// The progress of a command from its reads to its changes.
struct CommandSteps<Outcome: Sendable> {
    enum State {
        /// Waiting for the rows of these statements.
        case reading([Statement])
        case decided([Change], @Sendable ([Int64]) -> Outcome)
        case failed(any Error)
    }

    private(set) var state: State
    /// All reads so far.
    private(set) var reads: [Read] = []
    private(set) var facts = RowFacts()
    /// Of the rows that it waits for: see ``Storage/Read/expectedByteCount``.
    private(set) var expectedByteCount = 0
    private var next: (@Sendable ([[Row]]) throws -> StoreCommand<Outcome>)?

    init(_ command: StoreCommand<Outcome>) {
        state = .reading([])
        advance { command }
    }

    /// - Parameter found: the rows of each statement.
    mutating func take(_ found: ArraySlice<StatementResult>) {
        guard let next else { return }
        let rows = found.map(\.rows)
        for (read, rows) in zip(reads.suffix(rows.count), rows) { facts.note(read, rows) }
        advance { try next(rows) }
    }

    mutating func fail(_ error: any Error) {
        state = .failed(error)
    }

    private mutating func advance(_ step: () throws -> StoreCommand<Outcome>) {
        do {
            var command = try step()
            while true {
                switch command {
                case .apply(let changes, let outcome):
                    state = .decided(changes, outcome)
                    return
                case .read(let wanted, let next):
                    guard wanted.isEmpty else {
                        reads += wanted
                        expectedByteCount = wanted.reduce(0) { $0 + $1.expectedByteCount }
                        self.next = next
                        state = .reading(try wanted.map { try $0.statement() })
                        return
                    }
                    command = try next([])
                }
            }
        } catch {
            state = .failed(error)
        }
    }
}
