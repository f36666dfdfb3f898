import Storage

/// Numbered counters with a note.
enum Counters {
    static let number = Column("number", .integer)
    static let count = Column("count", .integer)
    static let owner = Column("owner", .integer, isOptional: true)
    static let sealed = Column("sealed", .bytes, isOptional: true)
    static let table = Table(
        "counter", columns: [number, count, owner, sealed], unique: [number],
        sealed: SealedColumn(sealed, boundTo: [number], label: "counters"))
    static let part = StorePart("counters", tables: [table])

    static let insert = Mutation(table, .insert([number, count, owner]))
    static let insertSealed = Mutation(table, .insert([number, count, sealed]))
    static let insertOrIgnore = Mutation(table, .insertOrIgnore([number, count, owner]))
    static let upsert = Mutation(table, .upsert([number, count]))
    static let setByID = Mutation(table, .update([count], where: [.equal(.id), .equal(count)]))
    static let setOwner = Mutation(table, .updateAny([owner], where: [.equal(number)]))
    static let moveAll = Mutation(table, .updateAny([owner], where: [.equal(owner)]))
    static let removeByNumber = Mutation(table, .delete(where: [.equal(number)]))
    static let removeByID = Mutation(table, .delete(where: [.equal(.id)]))
    static let removeLow = Mutation(table, .delete(where: [.less(count)]))

    static let find = Query(table, [.id, count], where: [.equal(number)])
    static let findCount = Query(table, [count], where: [.equal(number)])
    static let countOfOwner = Query(table, [.count], where: [.equal(owner)])
    static let countAll = Query(table, [.count])
    static let numbers = Query(table, [number, count, owner], order: [.ascending(number)])
    static let sealedRows = Query(table, [number, sealed], where: [.present(sealed)], order: [.ascending(number)])

    static func add(_ number: Int64) -> StoreCommand<Void> {
        .change([insert(.integer(number), .integer(0), .null)])
    }

    /// Returns the previous count.
    static func increment(_ number: Int64) -> StoreCommand<Int64> {
        .find(find(.integer(number))) { rows in
            guard let row = rows.first else { throw UnexpectedValue() }
            let count = try row.integer(1)
            return .change([setByID(.integer(count + 1), .integer(try row.integer(0)), .integer(count))], count)
        }
    }

    static func value(_ number: Int64) -> StoreCommand<Int64?> {
        .find(findCount(.integer(number))) { .done(try $0.first?.integer(0)) }
    }

    static func all() -> StoreCommand<[[Value]]> {
        .find(numbers()) { .done($0.map(\.values)) }
    }
}
