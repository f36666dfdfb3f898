package import Storage
import Core
import Waku

/// The node's own tables: the hashes of messages that were handled recently, so that they are not handled again when the catch-up after a restart
/// finds them in a relay's store.
package enum NodeStorage {
    private static let at = Column("at", .integer)
    /// 32 bytes each.
    private static let hashes = Column("hashes", .bytes)
    private static let handled = Table("handled", columns: [at, hashes])
    package static let part = StorePart("node", tables: [handled])

    private static let handledByteLimit = 6 << 20
    private static let hashByteCount = 32
    /// The number of rows that one read of sizes returns: other reads wait for it.
    private static let sizeCount = 50_000

    private static let insert = Mutation(handled, .insert([at, hashes]))
    private static let all = Query(handled, [hashes], order: [.ascending(.id)])
    private static let fresh = Query(handled, [.id], where: [.atLeast(at)], order: [.ascending(.id)])
    private static let sizes = Query(
        handled, [.column(.id), .byteCount(hashes)], where: [.less(.id)], order: [.descending(.id)])
    private static let removeOld = Mutation(handled, .delete(where: [.less(at)]))
    private static let removeFirst = Mutation(handled, .delete(where: [.less(.id)]))

    static func remember(_ messages: [MessageHash], at now: Timestamp) -> [Change] {
        messages.isEmpty ? [] : [insert(.integer(now.rawValue), .bytes(messages.flatMap(\.bytes)))]
    }

    /// Deletes hashes from before `cutoff`. Rows are in the order of their times, apart from steps of the clock, so the oldest tells whether there are
    /// any: nothing else is read while the cursor stands.
    static func forgetHandled(before cutoff: Timestamp) -> StoreCommand<Void> {
        .find(fresh(.integer(cutoff.rawValue), limit: 1)) { rows in
            guard let first = rows.first else { return .change([removeOld(.integer(cutoff.rawValue))]) }
            return .change([removeFirst(.integer(try first.integer(0)))])
        }
    }

    /// Deletes the oldest hashes beyond 6 MiB, of which there are some when the cursor has not advanced for hours. Reads the sizes of all rows, on
    /// a reader.
    static func limitHandled(in store: any Store) async throws(StoreError) {
        var (byteCount, end) = (0, Int64.max)
        while true {
            let rows = try await store.fetch(rowSizes(before: end))
            for (id, size) in rows {
                byteCount += size
                guard byteCount > handledByteLimit else { continue }
                try await store.commit(.change([removeFirst(.integer(id + 1))]))
                return
            }
            guard rows.count == sizeCount, let last = rows.last else { return }
            end = last.id
        }
    }

    /// The newest rows before one, newest first.
    private static func rowSizes(before id: Int64) -> StoreCommand<[(id: Int64, byteCount: Int)]> {
        .find(sizes(.integer(id), limit: sizeCount)) { rows in .done(try rows.map { (try $0.integer(0), Int(try $0.integer(1))) }) }
    }

    static func handledMessages() -> StoreCommand<[MessageHash]> {
        .find(all()) { rows in
            .done(
                try rows.flatMap { row in
                    let bytes = try row.bytes(0)
                    return stride(from: 0, through: bytes.count - hashByteCount, by: hashByteCount).map {
                        MessageHash(bytes: Array(bytes[$0..<$0 + hashByteCount]))
                    }
                })
        }
    }
}
