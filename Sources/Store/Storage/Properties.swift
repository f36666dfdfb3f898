/// Names and values that describe the database itself.
package enum Properties {
    private static let name = Column("name", .text)
    private static let value = Column("value", .bytes)
    /// Each engine creates this table before those of any part, because it stores properties itself.
    package static let table = Table("property", columns: [name, value], unique: [name])
    private static let read = Query(table, [value], where: [.equal(name)])
    private static let readAll = Query(table, [name, value])
    private static let write = Mutation(table, .upsert([name, value]))
    private static let insert = Mutation(table, .insertOrIgnore([name, value]))
    private static let delete = Mutation(table, .delete(where: [.equal(name)]))

    /// The value of a property; nil if it was never set.
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

    /// Sets a property unless it has a value already.
    package static func claim(_ name: String, _ value: [UInt8]) -> Change { insert(.text(name), .bytes(value)) }

    package static func remove(_ name: String) -> Change { delete(.text(name)) }
}
