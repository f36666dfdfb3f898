import Storage
import Testing

extension StoreContract {
    private static let insertPair = Mutation(Sample.pair, .insert([Sample.group, Sample.member, Sample.note]))

    private static func pairs(in store: any Store) throws -> [[Value]] {
        let query = Query(Sample.pair, [.id, Sample.group, Sample.member, Sample.note], order: [.ascending(.id)])
        return try store.read(.find(query()) { .done($0.map(\.values)) })
    }

    static var mutations: [StoreContract] {
        [
            StoreContract("An insert leaves other columns null; ids increase") { fixture in
                let store = try fixture.open()
                let insert = Mutation(Sample.item, .insert([Sample.size, Sample.number]))
                let ids = try await store.commit(.apply((1...5).map { insert(.integer(10 * $0), .integer($0)) }) { $0 })
                #expect(ids == ids.sorted() && Set(ids).count == 5)
                #expect(try store.read(Sample.items()) == (1...5).map { Sample.Item(number: $0, size: 10 * $0) })
            },
            StoreContract("Arguments that are left out are null, also after a change that had them all") { fixture in
                let store = try fixture.open()
                let item = Sample.Item(number: 1, name: "one", data: [1], size: 1)
                try await store.commit(.change([item.insert, Sample.insert(.integer(2))]))
                try await store.commit(.change([Sample.remove()]))
                #expect(try store.read(Sample.items()) == [item, Sample.Item(number: 2)])
                #expect(try await store.commit(.find(Sample.findSize()) { .done($0.count) }) == 0)
            },
            StoreContract("Unique columns are unique together; a null among others does not matter") { fixture in
                let store = try fixture.open()
                let (one, two) = (Value.bytes([1]), Value.bytes([2]))
                try await store.commit(
                    .change([
                        insertPair(.integer(1), one, .null), insertPair(.integer(1), two, .null), insertPair(.integer(2), one, .null),
                    ]))
                await #expect(throws: StoreError.self) { try await store.commit(.change([insertPair(.integer(2), one, .text("x"))])) }
                #expect(try pairs(in: store).count == 3)
            },
            StoreContract("insertOrIgnore keeps the existing row") { fixture in
                let store = try fixture.open()
                let insert = Mutation(Sample.pair, .insertOrIgnore([Sample.group, Sample.member, Sample.note]))
                let ids = try await store.commit(
                    .apply([
                        insert(.integer(1), .bytes([1]), .text("first")), insert(.integer(1), .bytes([1]), .text("second")),
                        insert(.integer(1), .bytes([2]), .text("other")),
                    ]) { $0 })
                #expect(ids.isEmpty)
                #expect(try pairs(in: store).map(\.[3]) == [.text("first"), .text("other")])
            },
            StoreContract("upsert replaces the columns of the row with the same unique columns: its id and other columns stay") { fixture in
                let store = try fixture.open()
                let upsert = Mutation(Sample.pair, .upsert([Sample.group, Sample.member, Sample.note]))
                try await store.commit(.change([upsert(.integer(1), .bytes([1]), .text("first"))]))
                try await store.commit(.change([upsert(.integer(2), .bytes([1]), .text("other"))]))
                let before = try pairs(in: store)
                try await store.commit(.change([upsert(.integer(1), .bytes([1]), .text("second"))]))
                let after = try pairs(in: store)
                #expect(after.map(\.[0]) == before.map(\.[0]))
                #expect(after.map(\.[3]) == [.text("second"), .text("other")])

                try await store.commit(.change([Sample.Item(number: 1, name: "one", data: [1], size: 1).insert]))
                let name = Mutation(Sample.item, .upsert([Sample.number, Sample.name]))
                try await store.commit(.change([name(.integer(1), .text("ONE")), name(.integer(2), .null)]))
                #expect(
                    try store.read(Sample.items()) == [
                        Sample.Item(number: 1, name: "ONE", data: [1], size: 1), Sample.Item(number: 2),
                    ])
            },
            StoreContract("upsert by id") { fixture in
                let store = try fixture.open()
                let upsert = Mutation(Sample.ticket, .upsert([.id, Sample.name]))
                let find = Query(Sample.ticket, [.id, Sample.name], order: [.ascending(.id)])
                try await store.commit(.change([upsert(.integer(-77), .text("a")), upsert(.integer(1 << 60), .text("b"))]))
                try await store.commit(.change([upsert(.integer(-77), .text("c"))]))
                let found = try store.read(.find(find()) { .done($0.map(\.values)) })
                #expect(found == [[.integer(-77), .text("c")], [.integer(1 << 60), .text("b")]])
            },
            StoreContract("update, updateAny and delete concern the rows that meet all conditions, and no others") { fixture in
                let store = try await fixture.open(with: (1...6).map { Sample.Item(number: $0, name: "n", size: $0 % 2) })
                let update = Mutation(
                    Sample.item, .update([Sample.name, Sample.data], where: [.equal(Sample.size), .between(Sample.number)]))
                try await store.commit(.change([update(.text("odd"), .null, .integer(1), .integer(2), .integer(5))]))
                #expect(try store.read(Sample.items()).map(\.name) == ["n", "n", "odd", "n", "odd", "n"])
                let updateAny = Mutation(Sample.item, .updateAny([Sample.size], where: [.less(Sample.number)]))
                try await store.commit(.change([updateAny(.null, .integer(3))]))
                #expect(try store.read(Sample.items()).map(\.size) == [nil, nil, 1, 0, 1, 0])
                let delete = Mutation(Sample.item, .delete(where: [.present(Sample.size), .equal(Sample.name)]))
                try await store.commit(.change([delete(.text("n"))]))
                #expect(try store.read(Sample.items()).map(\.number) == [1, 2, 3, 5])
                let ids: [Int64] = try store.read(
                    .find(Query(Sample.item, [.id], order: [.ascending(Sample.number)])()) { .done(try $0.map { try $0.integer(0) }) })
                let deleteAmong = Mutation(Sample.item, .delete(where: [.idAmong, .absent(Sample.size)]))
                try await store.commit(.change([deleteAmong(ids: [ids[0], ids[2]])]))
                #expect(try store.read(Sample.items()).map(\.number) == [2, 3, 5])
                try await store.commit(.change([Mutation(Sample.item, .delete(where: []))()]))
                #expect(try store.read(Sample.items()).isEmpty)
            },
            StoreContract("Changes of one command are applied in their order") { fixture in
                let store = try fixture.open()
                let item = Sample.Item(number: 1)
                try await store.commit(.change([item.insert, Sample.remove(.integer(1)), item.insert]))
                #expect(try store.read(Sample.numbers()) == [1])
            },
            StoreContract("A value of a wrong kind fails only its command") { fixture in
                let store = try fixture.open()
                let insert = Mutation(Sample.item, .insert([Sample.number]))
                let results = await store.commitEach([
                    .change([insert(.integer(1))]), .change([insert(.null)]), .change([insert(.integer(2))]),
                ])
                #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
                let ignore = Mutation(Sample.item, .insertOrIgnore([Sample.number]))
                await #expect(throws: StoreError.self) { try await store.commit(.change([ignore(.null)])) }
                #expect(try store.read(Sample.numbers()) == [1, 2])
            },
            StoreContract("Ids of deleted rows are never reassigned, also after reopening") { fixture in
                let store = try fixture.open()
                let insert = Mutation(Sample.ticket, .insert([Sample.name]))
                let clear = Mutation(Sample.ticket, .delete(where: []))
                let add = StoreCommand.apply([insert(.text("x"))]) { $0[0] }
                var ids = [try await store.commit(add), try await store.commit(add)]
                try await store.commit(.change([clear()]))
                ids.append(try await store.commit(add))
                try await store.commit(.change([clear()]))
                try store.close()
                let reopened = try fixture.open()
                ids.append(try await reopened.commit(add))
                #expect(ids == ids.sorted() && Set(ids).count == 4)
            },
        ]
    }
}
