import Storage

/// Tables to test a store with.
enum Sample {
    static let number = Column("number", .integer)
    static let name = Column("name", .text, isOptional: true)
    static let data = Column("data", .bytes, isOptional: true)
    static let size = Column("size", .integer, isOptional: true)
    static let item = Table(
        "item", columns: [number, name, data, size], unique: [number],
        indexes: [Index("item_size", on: [size], where: .present(size)), Index("item_name", on: [name, size])])

    static let group = Column("grp", .integer)
    static let member = Column("member", .bytes)
    static let note = Column("note", .text, isOptional: true)
    static let pair = Table("pair", columns: [group, member, note], unique: [group, member])

    static let ticket = Table("ticket", columns: [name], neverReusesIDs: true)

    static let content = Column("content", .bytes, isOptional: true)
    static let letter = Table(
        "letter", columns: [number, member, content], sealed: SealedColumn(content, boundTo: [number, member], label: "letters"))

    static let cached = Column("cached", .bytes)
    static let cache = Table("cache", columns: [cached], sealed: SealedColumn(cached: cached, boundTo: .text, label: "cached keys"))

    static let part = StorePart("sample", tables: [item, pair, ticket, letter, cache])

    // MARK: Items

    struct Item: Hashable, Sendable {
        var number: Int64
        var name: String?
        var data: [UInt8]?
        var size: Int64?

        var insert: Change { Sample.insert(.integer(number), name.map(Value.text) ?? .null, Value(data), Value(size)) }
    }

    static let insert = Mutation(item, .insert([number, name, data, size]))
    static let setSize = Mutation(item, .update([size], where: [.equal(number), .equal(size)]))
    static let remove = Mutation(item, .delete(where: [.equal(number)]))
    static let findSize = Query(item, [size], where: [.equal(number)])
    private static let find = Query(item, [number, name, data, size], order: [.ascending(number)])
    private static let findNumbers = Query(item, [number], order: [.ascending(.id)])

    static func items() -> StoreCommand<[Item]> {
        .find(find()) { rows in
            .done(
                try rows.map { row in
                    var name: String?
                    if case .text(let text) = row.values[1] { name = text }
                    return Item(
                        number: try row.integer(0), name: name, data: try row.optionalBytes(2), size: try row.optionalInteger(3))
                })
        }
    }

    /// In the order in which they were inserted.
    static func numbers() -> StoreCommand<[Int64]> {
        .find(findNumbers()) { .done(try $0.map { try $0.integer(0) }) }
    }

    static func add(_ number: Int64) -> StoreCommand<Int64> {
        .apply([Item(number: number).insert]) { $0[0] }
    }

    static func size(of number: Int64) -> StoreCommand<Int64?> {
        .find(findSize(.integer(number))) { .done(try $0.first?.optionalInteger(0)) }
    }

    /// Increments the item's stored size. Returns the previous size.
    static func increment(_ number: Int64) -> StoreCommand<Int64> {
        .find(findSize(.integer(number))) { rows in
            guard let size = try rows.first?.integer(0) else { throw UnexpectedValue() }
            return .change([setSize(.integer(size + 1), .integer(number), .integer(size))], size)
        }
    }
}

/// The error that a step throws in a test.
struct Refused: Error {}

func failing<Outcome>() -> StoreCommand<Outcome> {
    .read([]) { _ in throw Refused() }
}
