import StatusProtocol

/// Decides which topic key is derived ahead of the first query that needs it: the newest registrant's first. A value.
///
///     add ─▶ waiting ──(newest first, a batch)──▶ derive
///              │ (over the limit: the oldest is forgotten)
///              ▼
///            scan of the store, newest rows first, until its end was reached ─▶ waiting
///
/// Registrants that were forgotten for want of room, or that an earlier run left, are found in the store again once nothing else waits.
struct TopicKeyBacklog: Sendable {
    enum Action: Hashable {
        case derive([KeyHash])
        /// - Parameter before: rows with a lower id than this; nil: from the newest on.
        case scan(before: Int64?)
    }

    private enum Scan {
        case due(before: Int64?)
        case running(mustRepeat: Bool)
        case done
    }

    /// Few, so that a newer registrant does not wait long for its turn.
    static let batchLimit = 8

    private let limit: Int
    /// The newest last.
    private var waiting: [KeyHash] = []
    private var scan = Scan.due(before: nil)

    /// - Parameter limit: registrants that wait at most.
    init(limit: Int) {
        self.limit = limit
    }

    var count: Int { waiting.count }

    mutating func add(_ registrant: KeyHash) {
        waiting.append(registrant)
        // An eighth at once, so that a flood does not move the whole list for each one.
        guard waiting.count > limit else { return }
        waiting.removeFirst(max(1, limit / 8))
        if case .running = scan { scan = .running(mustRepeat: true) } else { scan = .due(before: nil) }
    }

    /// nil: nothing to do until a registrant is added, or a scan has ended.
    mutating func next() -> Action? {
        if !waiting.isEmpty {
            let batch = waiting.suffix(Self.batchLimit)
            waiting.removeLast(batch.count)
            return .derive(batch.reversed())
        }
        guard case .due(let before) = scan else { return nil }
        scan = .running(mustRepeat: false)
        return .scan(before: before)
    }

    /// - Parameters:
    ///   - registrants: without a key, the newest first.
    ///   - next: where to go on; nil at the end of the store.
    mutating func scanned(_ registrants: [KeyHash], next: Int64?) {
        guard case .running(let mustRepeat) = scan else { return }
        let room = max(0, limit - waiting.count)
        waiting.insert(contentsOf: registrants.prefix(room).reversed(), at: 0)
        if mustRepeat || registrants.count > room {
            scan = .due(before: nil)
        } else {
            scan = next.map { .due(before: $0) } ?? .done
        }
    }
}
