/// An operation on the store as a value: it names the rows to read, then returns the changes to apply.
///
///     read ──(rows)──▶ read ──(rows)──▶ apply
///       │                                ▲
///       └────────────────(rows)──────────┘
///
/// The steps in between are pure functions of the rows. An engine may read for many commands in one round trip, and runs a command's steps again from
/// the beginning when rows that its changes depend on were changed meanwhile: see ``Mutation/Kind``.
public enum StoreCommand<Outcome: Sendable>: Sendable {
    /// Reads; the closure receives the rows of each read, in the order of the reads.
    indirect case read([Read], @Sendable ([[Row]]) throws -> StoreCommand)
    /// Applies all changes or none. The outcome receives the ids of the rows inserted by ``Mutation/Kind/insert(_:)``, in order.
    case apply([Change], @Sendable (_ inserted: [Int64]) -> Outcome)

    /// A command without reads or changes.
    public static func done(_ outcome: Outcome) -> StoreCommand {
        .apply([]) { _ in outcome }
    }

    /// Commits changes, and returns a known outcome.
    public static func change(_ changes: [Change], _ outcome: Outcome) -> StoreCommand {
        .apply(changes) { _ in outcome }
    }

    /// A command with a single read.
    public static func find(_ read: Read, _ next: @escaping @Sendable ([Row]) throws -> StoreCommand) -> StoreCommand {
        .read([read]) { try next($0[0]) }
    }

    /// The same command with another outcome.
    public func map<Other: Sendable>(_ transform: @escaping @Sendable (Outcome) -> Other) -> StoreCommand<Other> {
        switch self {
        case .read(let reads, let next): .read(reads) { try next($0).map(transform) }
        case .apply(let changes, let outcome): .apply(changes) { transform(outcome($0)) }
        }
    }

    /// Continues with a command made from this one's outcome; the changes of both are applied together. The second command does not see the changes
    /// of the first. The outcome that it is made from has 0 for the ids of inserted rows, since they are assigned later.
    package func then<Other: Sendable>(_ next: @escaping @Sendable (Outcome) throws -> StoreCommand<Other>) -> StoreCommand<Other> {
        switch self {
        case .read(let reads, let step): .read(reads) { try step($0).then(next) }
        case .apply(let changes, let outcome):
            // Deferred to its turn: an earlier command may throw first.
            .read([]) { _ in
                let unknown = changes.lazy.filter(\.mutation.isInsert).map { _ in Int64(0) }
                return try next(outcome(Array(unknown))).preceded(by: changes)
            }
        }
    }

    /// Like ``then(_:)``, but reads for a second command in the same round trip as for this one. Use it when `next` usually continues with the second
    /// command; otherwise the rows read for it are ignored.
    ///
    /// - Parameter next: receives the outcome and the rest of the second command.
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

    /// Prepends changes to those of this command.
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
    /// Commits changes.
    public static func change(_ changes: [Change]) -> StoreCommand {
        .apply(changes) { _ in }
    }

    /// Combines commands into one, as ``each(_:)`` does.
    package static func all(_ commands: [StoreCommand]) -> StoreCommand {
        StoreCommand<[Void]>.each(commands).map { _ in }
    }
}

extension StoreCommand {
    /// Combines two commands into one, as ``each(_:)`` does.
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

    /// Combines commands into one that succeeds or fails as a whole. Their steps run together, so each sees the rows as they were before all of them;
    /// the changes are applied in the order of the commands.
    public static func each<Part: Sendable>(_ commands: [StoreCommand<Part>]) -> StoreCommand where Outcome == [Part] {
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
