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

    private static let insert = Mutation(handled, .insert([at, hashes]))
    private static let all = Query(handled, [hashes], order: [.ascending(.id)])
    private static let sizes = Query(handled, [.column(.id), .byteCount(hashes)], order: [.descending(.id)])
    private static let removeOld = Mutation(handled, .delete(where: [.less(at)]))
    private static let removeFirst = Mutation(handled, .delete(where: [.less(.id)]))

    static func remember(_ messages: [MessageHash], at now: Timestamp) -> [Change] {
        messages.isEmpty ? [] : [insert(.integer(now.rawValue), .bytes(messages.flatMap(\.bytes)))]
    }

    /// Deletes hashes from before `cutoff`, and the oldest beyond 6 MiB.
    static func forgetHandled(before cutoff: Timestamp) -> StoreCommand<Void> {
        .find(sizes()) { rows in
            var (byteCount, firstKept) = (0, Int64.min)
            for row in rows {
                byteCount += Int(try row.integer(1))
                guard byteCount > handledByteLimit else { continue }
                firstKept = try row.integer(0) + 1
                break
            }
            return .change([removeOld(.integer(cutoff.rawValue)), removeFirst(.integer(firstKept))])
        }
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
