/// What a database says of itself: names and values.
package enum Properties {
    private static let name = Column("name", .text)
    private static let value = Column("value", .bytes)
    /// Made by each engine before any part's tables: it needs some itself.
    package static let table = Table("property", columns: [name, value], unique: [name])
    private static let read = Query(table, [value], where: [.equal(name)])
    private static let readAll = Query(table, [name, value])
    private static let write = Mutation(table, .upsert([name, value]))
    private static let insert = Mutation(table, .insertOrIgnore([name, value]))
    private static let delete = Mutation(table, .delete(where: [.equal(name)]))

    /// nil when it was never set.
    package static func property(_ name: String) -> StoreCommand<[UInt8]?> {
        .find(read(.text(name))) { rows in .done(try rows.first?.bytes(0)) }
    }

    package static func all() -> StoreCommand<[(name: String, value: [UInt8])]> {
        .find(readAll()) { rows in
            .done(
                try rows.map { row in
                    guard case .text(let name) = row.values[0] else { throw UnexpectedValue() }
                    return (name, try row.bytes(1))
                })
        }
    }

    package static func set(_ name: String, to value: [UInt8]) -> Change { write(.text(name), .bytes(value)) }

    /// Keeps the value that it has, if any.
    package static func claim(_ name: String, _ value: [UInt8]) -> Change { insert(.text(name), .bytes(value)) }

    package static func remove(_ name: String) -> Change { delete(.text(name)) }
}
