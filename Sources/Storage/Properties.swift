/// What a database says of itself: names and values.
package enum Properties {
    private static let name = Column("name", .text)
    private static let value = Column("value", .bytes)
    /// Made by each engine before any part's tables: it needs some itself.
    package static let table = Table("property", columns: [name, value], unique: [name])
    private static let read = Query(table, [value], where: [.equal(name)])
    private static let write = Mutation(table, .upsert([name, value]))
    private static let delete = Mutation(table, .delete(where: [.equal(name)]))

    /// nil when it was never set.
    package static func property(_ name: String) -> StoreCommand<[UInt8]?> {
        .find(read(.text(name))) { rows in .done(try rows.first?.bytes(0)) }
    }

    package static func set(_ name: String, to value: [UInt8]) -> Change { write(.text(name), .bytes(value)) }

    package static func remove(_ name: String) -> Change { delete(.text(name)) }
}
