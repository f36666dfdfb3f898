import Storage
import Testing

extension StoreContract {
    private static let value = Column("value", .integer)
    private static let later = Column("later", .text, isOptional: true)

    /// A part with one table of one column.
    private static func part(_ name: String) -> (part: StorePart, table: Table) {
        let table = Table("table_of_\(name)", columns: [value])
        return (StorePart(name, tables: [table]), table)
    }

    private static func add(_ number: Int64, to table: Table) -> StoreCommand<Void> {
        .change([Mutation(table, .insert([value]))(.integer(number))])
    }

    private static func values(of table: Table, in store: any Store) throws -> [Int64] {
        let query = Query(table, [value], order: [.ascending(.id)])
        return try store.read(.find(query()) { .done(try $0.map { try $0.integer(0) }) })
    }

    static var migrations: [StoreContract] {
        [
            StoreContract("Parts that are added later get their tables, wherever they stand among the others") { fixture in
                let (first, second, third) = (part("first"), part("second"), part("third"))
                let store = try fixture.open([second.part])
                try await store.commit(add(2, to: second.table))
                try store.close()
                let reopened = try fixture.open([first.part, second.part, third.part])
                try await reopened.commit(.all([add(1, to: first.table), add(3, to: third.table)]))
                for (number, table) in [first.table, second.table, third.table].enumerated() {
                    #expect(try values(of: table, in: reopened) == [Int64(number + 1)])
                }
            },
            StoreContract("A part's second migration adds columns, indexes and tables, and drops tables; its rows stay") { fixture in
                let (old, gone) = (part("grown"), Table("gone", columns: [value]))
                let first: StorePart.Migration = [.create(old.table), .create(gone)]
                let store = try fixture.open([StorePart("grown", tables: [old.table, gone], migrations: [first])])
                try await store.commit(.all([add(1, to: old.table), add(7, to: gone)]))
                try store.close()

                let index = Index("grown_later", on: [later])
                let new = Table(old.table.name, columns: [value, later], indexes: [index])
                let added = Table("added", columns: [value])
                let second: StorePart.Migration = [
                    .addColumn(later, to: new), .createIndex(index, on: new), .create(added), .drop(table: "gone"),
                ]
                let grown = StorePart("grown", tables: [new, added], migrations: [first, second])
                let other = part("other")
                let reopened = try fixture.open([grown, other.part])
                let insert = Mutation(new, .insert([value, later]))
                try await reopened.commit(.change([insert(.integer(2), .text("new"))]))
                try await reopened.commit(.all([add(3, to: added), add(4, to: other.table)]))
                let query = Query(new, [value, later], order: [.ascending(.id)])
                let found = try reopened.read(.find(query()) { .done($0.map(\.values)) })
                #expect(found == [[.integer(1), .null], [.integer(2), .text("new")]])
                #expect(throws: StoreError.self) { try values(of: gone, in: reopened) }
                // A new database with both migrations has the same tables.
                try reopened.close()
                let again = try fixture.open([grown, other.part])
                #expect(try values(of: added, in: again) == [3])
            },
            StoreContract("A migration keeps ids of deleted rows from being assigned again; rows, ids and uniqueness stay") { fixture in
                let old = Table("lasting", columns: [value], unique: [value])
                let table = Table("lasting", columns: [value], unique: [value], neverReusesIDs: true)
                let first = StorePart("lasting", tables: [old])
                let store = try fixture.open([first])
                try await store.commit(.all([add(1, to: old), add(2, to: old), add(3, to: old)]))
                try store.close()
                let part = StorePart("lasting", tables: [table], migrations: [[.create(old)], [.neverReuseIDs(of: table)]])
                let migrated = try fixture.open([part])
                let query = Query(table, [.id, value], order: [.ascending(.id)])
                let before = try migrated.read(.find(query()) { .done($0.map(\.values)) })
                #expect(before.map(\.last) == [.integer(1), .integer(2), .integer(3)])
                let last = try #require(before.last?.first)
                try await migrated.commit(.change([Mutation(table, .delete(where: [.equal(value)]))(.integer(3))]))
                try await migrated.commit(add(4, to: table))
                let after = try migrated.read(.find(query()) { .done($0.map(\.values)) })
                #expect(after.prefix(2) == before.prefix(2))
                #expect(after.last?.last == .integer(4) && after.last?.first != last)
                await #expect(throws: (any Error).self) { try await migrated.commit(add(4, to: table)) }
            },
            StoreContract("A new database has the same tables as a migrated one") { fixture in
                let (base, index) = (Table("base", columns: [value]), Index("base_later", on: [later], where: .present(later)))
                let table = Table("base", columns: [value, later], indexes: [index])
                let part = StorePart(
                    "base", tables: [table],
                    migrations: [[.create(base)], [.addColumn(later, to: table)], [.createIndex(index, on: table)]])
                let store = try fixture.open([part])
                try await store.commit(.change([Mutation(table, .insert([value, later]))(.integer(1), .text("x"))]))
                let query = Query(table, [.column(later)], where: [.present(later)], index: "base_later")
                #expect(try store.read(.find(query()) { .done($0.map(\.values)) }) == [[.text("x")]])
            },
            StoreContract("Tables of unknown parts are not changed") { fixture in
                let (known, unknown) = (part("known"), part("unknown"))
                let store = try fixture.open([known.part, unknown.part])
                try await store.commit(.all([add(1, to: known.table), add(2, to: unknown.table)]))
                try store.close()
                let without = try fixture.open([known.part])
                try await without.commit(add(3, to: known.table))
                try without.close()
                let reopened = try fixture.open([known.part, unknown.part])
                #expect(try values(of: known.table, in: reopened) == [1, 3])
                #expect(try values(of: unknown.table, in: reopened) == [2])
            },
            StoreContract("A database with an unknown part is not moved: its rows would be left out") { fixture in
                let (known, unknown) = (part("known"), part("unknown"))
                let store = try fixture.open([known.part, unknown.part])
                try store.requireNothingAdded()
                try await store.commit(add(1, to: known.table))
                try store.close()
                let (without, target) = (try fixture.open([known.part]), try fixture.openOther([known.part]))
                for transfer in [(without, target), (target, without)] {
                    let error = await #expect(throws: StoreError.self) {
                        try await StoreTransfer(from: transfer.0, to: transfer.1, named: "there").run()
                    }
                    #expect(error?.code == .unsuitable && error?.message.contains("(unknown)") == true)
                }
                #expect(try values(of: known.table, in: target) == [] && without.read(StoreTransfer.obstacle()) == nil)
            },
            StoreContract("An incompatible database of a later version is refused and not changed") { fixture in
                let (old, gone) = (part("part"), Table("gone", columns: [value]))
                let table = Table(old.table.name, columns: [value, later])
                let new = StorePart(
                    "part", tables: [table],
                    migrations: [
                        [.create(old.table), .create(gone)], [.addColumn(later, to: table)],
                        StorePart.Migration([.drop(table: "gone")], finishes: true),
                    ])
                let store = try fixture.open([new])
                try await store.commit(add(1, to: table))
                try store.close()
                let error = #expect(throws: StoreError.self) { try fixture.open([old.part]) }
                #expect(error?.code == .newer)
                #expect(try values(of: table, in: fixture.open([new])) == [1])
            },
            StoreContract("A part whose name begins with the name of another part is distinct from it") { fixture in
                let (short, long) = (part("v"), part("v_long"))
                let store = try fixture.open([short.part, long.part])
                try await store.commit(add(1, to: long.table))
                try store.close()
                let without = try fixture.open([short.part])
                #expect(try values(of: short.table, in: without) == [])
            },
        ]
    }
}
