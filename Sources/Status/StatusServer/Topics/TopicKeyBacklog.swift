import StatusProtocol

/// Decides which topic keys are derived ahead of the first query: the newest registrant's first.
///
///     add ─▶ waiting ──(newest first, a batch)──▶ derive
///              │ (over the limit: the oldest is dropped)
///              ▼
///            scan of the store, newest rows first, until its end was reached ─▶ waiting
///
/// When the queue is empty, a scan of the store finds dropped registrants and those left over from an earlier run.
struct TopicKeyBacklog: Sendable {
    enum Action: Hashable {
        case derive([KeyHash])
        /// - Parameter before: scan rows with a lower id than this; nil for all.
        case scan(before: Int64?)
    }

    private enum Scan {
        case due(before: Int64?)
        case running(mustRepeat: Bool)
        case done
    }

    /// Small, so that a newer registrant does not wait long.
    static let batchLimit = 8

    private let limit: Int
    /// Ordered, the newest last.
    private var waiting: [KeyHash] = []
    private var scan = Scan.due(before: nil)

    init(limit: Int) {
        self.limit = limit
    }

    var count: Int { waiting.count }

    mutating func add(_ registrant: KeyHash) {
        waiting.append(registrant)
        // Drops an eighth at once, so that a flood does not move the whole list for each registrant.
        guard waiting.count > limit else { return }
        waiting.removeFirst(max(1, limit / 8))
        if case .running = scan { scan = .running(mustRepeat: true) } else { scan = .due(before: nil) }
    }

    /// The next action; nil until a registrant is added or a scan has ended.
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
    ///   - registrants: registrants without a key, the newest first.
    ///   - next: the row id to continue before; nil at the end of the store.
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
