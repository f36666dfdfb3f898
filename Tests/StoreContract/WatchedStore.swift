import Storage
import Synchronization

/// A store that notes the number of rows of ``Sample/item`` after each submission.
final class WatchedStore: Store {
    private static let count = Query(Sample.item, [.count])

    private let base: any Store
    private let noted = Mutex<[Int]>([])

    init(_ base: any Store) {
        self.base = base
    }

    /// The numbers noted since the last call.
    func takeCounts() -> [Int] {
        noted.withLock { noted in
            defer { noted = [] }
            return noted
        }
    }

    func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        base.submit(commands) { [self] results in
            let count = try? base.read(.find(Self.count()) { .done(Int(try $0[0].integer(0))) })
            noted.withLock { $0.append(count ?? -1) }
            completion(results)
        }
    }

    var sealer: Sealer { base.sealer }
    func afterCommits(_ body: @escaping @Sendable () -> Void) { base.afterCommits(body) }
    func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
        try base.readEach(commands)
    }
    func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) { try base.scan(read, visit) }
    func onReader(_ body: @escaping @Sendable () -> Void) { base.onReader(body) }
    var failure: String? { base.failure }
    var byteCount: Int { base.byteCount }
    func maintain() async { await base.maintain() }
    func recheck() async { await base.recheck() }
    func close() throws { try base.close() }
}
