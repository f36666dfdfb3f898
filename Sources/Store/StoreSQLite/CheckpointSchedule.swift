/// Decides when the log is moved into the database. Counts of pages and ends of copies come in, a step goes out.
///
///     growing ──(pages ≥ limit)──▶ copying ──(copied, or failed)──▶ copied
///       ▲ ▲                          │ └──(pages ≥ starvation: finish)──▶ copying
///       │ └──(a read obstructs it)───┘                               │
///       └───────────────────(commit: finish)─────────────────────────┘
///
/// Most pages are copied by another connection, while the writer appends to the log. The writer copies the few that it appended meanwhile: when all are
/// copied, the next transaction starts at the beginning of the log again. Pages that an earlier read keeps in the log are left to the next copy: after
/// an hour's backup they may take minutes.
struct CheckpointSchedule {
    enum Step: Equatable {
        /// Copy the log on the other connection, then call ``CheckpointSchedule/copied(_:)``.
        case copy
        /// Copy the rest on the writer's connection, now.
        case finish
    }

    private enum State {
        case growing(pages: Int)
        /// With the pages since the copy was asked for.
        case copying(pages: Int)
        case copied
    }

    /// In pages of 4 KiB, 64 MiB: a page that many transactions change is moved into the database less often.
    static let limit = 16_384
    /// The number of pages after which the writer copies, if the other connection's thread has not run until then. While that copies, SQLite refuses the
    /// writer's attempt at once.
    static let starvation = 4 * limit
    /// The writer copies so many pages in some tenths of a second.
    static let rest = limit / 4

    private var state = State.growing(pages: 0)

    /// - Parameter pages: the number of pages that were appended to the log since the last call.
    mutating func committed(pages: Int) -> Step? {
        switch state {
        case .growing(let count) where count + pages >= Self.limit:
            state = .copying(pages: 0)
            return .copy
        case .growing(let count):
            state = .growing(pages: count + pages)
            return nil
        case .copying(let count) where count + pages >= Self.starvation:
            state = .copying(pages: 0)
            return .finish
        case .copying(let count):
            state = .copying(pages: count + pages)
            return nil
        case .copied:
            state = .growing(pages: 0)
            return .finish
        }
    }

    /// The copy ended. If it failed, the writer copies everything.
    mutating func copied(_ outcome: LogCopier.Outcome) {
        guard case .copying = state else { return }
        state = outcome == .obstructed ? .growing(pages: 0) : .copied
    }
}
