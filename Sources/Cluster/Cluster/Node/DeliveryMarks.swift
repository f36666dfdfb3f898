import Delivery
import Storage

/// Writes marks for deliveries that are about to be posted. A mark has the id of the node and the epoch of the partition.
enum DeliveryMarks {
    private static let find = Query(
        MarkTable.table, [MarkTable.row, MarkTable.node, MarkTable.epoch], where: [.among(MarkTable.row)])
    private static let insert = Mutation(MarkTable.table, .insert([MarkTable.row, MarkTable.node, MarkTable.epoch]))
    /// Keeps `marked_at`, the time of the first mark.
    private static let replace = Mutation(
        MarkTable.table,
        .update([MarkTable.node, MarkTable.epoch], where: [.equal(MarkTable.row), .equal(MarkTable.node), .equal(MarkTable.epoch)]))

    /// The marks of deliveries, by their ids in the outbox.
    private static func marks(of ids: [Int64]) -> StoreCommand<[Int64: DeliveryMark]> {
        .find(find(ids: ids)) { rows in
            .done(
                try rows.reduce(into: [:]) { marks, row in
                    marks[try row.integer(0)] = DeliveryMark(
                        owner: NodeID(rawValue: try row.unsigned(1)), epoch: try row.unsigned(2))
                })
        }
    }

    struct Request: Sendable {
        let waiting: WaitingDelivery
        let mark: DeliveryMark
        /// Whether to replace a former owner's mark: the outcome of that owner's post is unknown, and the post is now to be repeated.
        let replacesOthers: Bool
    }

    /// Marks each delivery that is the oldest of its device in the outbox. A delivery that already has the mark is not changed.
    ///
    /// - Returns: the ids of the deliveries that have the requested mark.
    static func mark(_ requests: [Request]) -> StoreCommand<Set<Int64>> {
        let ids = requests.map(\.waiting.id)
        return DeliveryStorage.oldest(of: requests.map(\.waiting.device)).and(marks(of: ids)).then { oldest, marks in
            var (changes, marked) = ([Change](), Set<Int64>())
            for request in requests where oldest[request.waiting.device] == request.waiting.id {
                let id = request.waiting.id
                let values = (
                    Value.integer(Int64(bitPattern: request.mark.owner.rawValue)), Value.integer(Int64(bitPattern: request.mark.epoch))
                )
                switch marks[id] {
                case nil: changes.append(insert(.integer(id), values.0, values.1))
                case request.mark: break
                case let other? where request.replacesOthers && other.epoch < request.mark.epoch:
                    changes.append(
                        replace(
                            values.0, values.1, .integer(id), .integer(Int64(bitPattern: other.owner.rawValue)),
                            .integer(Int64(bitPattern: other.epoch))))
                default: continue
                }
                marked.insert(id)
            }
            return .change(changes, marked)
        }
    }
}
