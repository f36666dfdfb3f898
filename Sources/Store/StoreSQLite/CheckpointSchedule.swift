/// Decides when the log is moved into the database. Counts of pages and ends of copies come in, a step goes out.
///
///     growing ──(pages ≥ limit)──▶ copying ──(copied)──▶ copied
///        ▲                                                 │
///        └──────────────(commit: finish)───────────────────┘
///
/// Most pages are copied by another connection, while the writer appends to the log. The writer copies the few that it appended meanwhile: when all are
/// copied, the next transaction starts at the beginning of the log again.
struct CheckpointSchedule {
    enum Step: Equatable {
        /// Copy the log on the other connection, then call ``CheckpointSchedule/copied()``.
        case copy
        /// Copy the rest on the writer's connection, now.
        case finish
    }

    private enum State {
        case growing(pages: Int)
        case copying
        case copied
    }

    /// In pages of 4 KiB, 64 MiB: a page that many transactions change is moved into the database less often.
    static let limit = 16_384

    private var state = State.growing(pages: 0)

    /// - Parameter pages: the number of pages that were appended to the log since the last call.
    mutating func committed(pages: Int) -> Step? {
        switch state {
        case .growing(let count) where count + pages >= Self.limit:
            state = .copying
            return .copy
        case .growing(let count):
            state = .growing(pages: count + pages)
            return nil
        case .copying:
            return nil
        case .copied:
            state = .growing(pages: 0)
            return .finish
        }
    }

    /// The copy ended. If it failed, the writer copies everything.
    mutating func copied() {
        if case .copying = state { state = .copied }
    }
}
