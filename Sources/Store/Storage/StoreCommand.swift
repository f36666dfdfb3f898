/// What is asked of a store, as data: the rows that it rests on are named before, the changes come out.
///
///     read ──(rows)──▶ read ──(rows)──▶ apply
///       │                                ▲
///       └────────────────(rows)──────────┘
///
/// The steps in between are pure functions of the rows. An engine may read for many commands in one exchange, and takes a command's steps
/// again from the beginning when rows that its changes rest on have changed meanwhile: see ``Mutation/Kind``.
package enum StoreCommand<Outcome: Sendable>: Sendable {
    /// Rows for each of the reads, in their order.
    indirect case read([Read], @Sendable ([[Row]]) throws -> StoreCommand)
    /// All of the changes or none. The outcome gets the ids of the rows that were inserted, in their order, by ``Mutation/Kind/insert(_:)``.
    case apply([Change], @Sendable (_ inserted: [Int64]) -> Outcome)

    /// Changes nothing.
    package static func done(_ outcome: Outcome) -> StoreCommand {
        .apply([]) { _ in outcome }
    }

    package static func change(_ changes: [Change], _ outcome: Outcome) -> StoreCommand {
        .apply(changes) { _ in outcome }
    }

    /// One read alone.
    package static func find(_ read: Read, _ next: @escaping @Sendable ([Row]) throws -> StoreCommand) -> StoreCommand {
        .read([read]) { try next($0[0]) }
    }

    package func map<Other: Sendable>(_ transform: @escaping @Sendable (Outcome) -> Other) -> StoreCommand<Other> {
        switch self {
        case .read(let reads, let next): .read(reads) { try next($0).map(transform) }
        case .apply(let changes, let outcome): .apply(changes) { transform(outcome($0)) }
        }
    }

    /// Goes on with the outcome of this command; the changes of both are applied together. What follows does not see the changes of this
    /// command, and its outcome has 0 for the ids of inserted rows: they are assigned later.
    package func then<Other: Sendable>(_ next: @escaping @Sendable (Outcome) throws -> StoreCommand<Other>) -> StoreCommand<Other> {
        switch self {
        case .read(let reads, let step): .read(reads) { try step($0).then(next) }
        case .apply(let changes, let outcome):
            // Not run before its place: what comes first may throw.
            .read([]) { _ in
                let unknown = changes.lazy.filter(\.mutation.isInsert).map { _ in Int64(0) }
                return try next(outcome(Array(unknown))).preceded(by: changes)
            }
        }
    }

    /// The same with the first reads of another command made along with this one's: for what mostly is gone on with.
    ///
    /// - Parameter next: gets the outcome, and what the other command goes on with.
    package func then<Other: Sendable>(
        besides other: StoreCommand<Other>,
        _ next: @escaping @Sendable (Outcome, _ rest: () throws -> StoreCommand<Other>) throws -> StoreCommand<Other>
    ) -> StoreCommand<Other> {
        guard case .read(let reads, let step) = self, case .read(let otherReads, let otherStep) = other else {
            return then { try next($0) { other } }
        }
        return .read(reads + otherReads) { found in
            try step(Array(found.prefix(reads.count))).then { outcome in
                try next(outcome) { try otherStep(Array(found.dropFirst(reads.count))) }
            }
        }
    }

    /// The changes go before this command's own.
    private func preceded(by first: [Change]) -> StoreCommand {
        if first.isEmpty { return self }
        return switch self {
        case .read(let reads, let next): .read(reads) { try next($0).preceded(by: first) }
        case .apply(let changes, let outcome):
            .apply(first + changes) { inserted in
                outcome(Array(inserted.dropFirst(first.count(where: \.mutation.isInsert))))
            }
        }
    }
}

extension StoreCommand where Outcome == Void {
    package static func change(_ changes: [Change]) -> StoreCommand {
        .apply(changes) { _ in }
    }

    /// All of them as one, as ``each(_:)``.
    package static func all(_ commands: [StoreCommand]) -> StoreCommand {
        StoreCommand<[Void]>.each(commands).map { _ in }
    }
}

extension StoreCommand {
    /// Both as one, as ``each(_:)``.
    package func and<Other: Sendable>(_ other: StoreCommand<Other>) -> StoreCommand<(Outcome, Other)> {
        switch (self, other) {
        case (.read(let reads, let next), .read(let otherReads, let otherNext)):
            .read(reads + otherReads) { found in
                try next(Array(found.prefix(reads.count))).and(otherNext(Array(found.dropFirst(reads.count))))
            }
        case (.read(let reads, let next), .apply): .read(reads) { try next($0).and(other) }
        case (.apply, .read(let reads, let next)): .read(reads) { try and(next($0)) }
        case (.apply(let changes, let outcome), .apply(let otherChanges, let otherOutcome)):
            .apply(changes + otherChanges) { inserted in
                let count = changes.count(where: \.mutation.isInsert)
                return (outcome(Array(inserted.prefix(count))), otherOutcome(Array(inserted.dropFirst(count))))
            }
        }
    }

    /// All of them as one: all succeed or none does. Their steps are taken together, so each sees the rows as they were before any of them;
    /// their changes are applied in the order of the commands.
    package static func each<Part: Sendable>(_ commands: [StoreCommand<Part>]) -> StoreCommand where Outcome == [Part] {
        var (reads, changes, isDecided) = ([Read](), [Change](), true)
        for command in commands {
            switch command {
            case .read(let more, _):
                reads += more
                isDecided = false
            case .apply(let more, _): changes += more
            }
        }
        guard isDecided else {
            return .read(reads) { found in
                var rest = found[...]
                return each(
                    try commands.map { command in
                        guard case .read(let reads, let next) = command else { return command }
                        defer { rest = rest.dropFirst(reads.count) }
                        return try next(Array(rest.prefix(reads.count)))
                    })
            }
        }
        return .apply(changes) { inserted in
            var rest = inserted[...]
            return commands.compactMap { command in
                guard case .apply(let changes, let outcome) = command else { return nil }
                let count = changes.count(where: \.mutation.isInsert)
                defer { rest = rest.dropFirst(count) }
                return outcome(Array(rest.prefix(count)))
            }
        }
    }
}
