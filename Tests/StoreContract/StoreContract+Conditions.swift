import Storage
import Testing

extension StoreContract {
    private static let rows = [
        Sample.Item(number: 1, name: "one", data: [0xAA], size: 10),
        Sample.Item(number: 2, name: "two", data: [0xAA, 0xBB], size: 20),
        Sample.Item(number: 3, name: "three", data: [0xAA, 0x00, 0xCC], size: 30),
        Sample.Item(number: 4, name: nil, data: [], size: -5),
        Sample.Item(number: 5, name: "", data: [0xFF, 0xFF], size: 0),
        Sample.Item(number: 6, name: "two", data: nil, size: nil),
        Sample.Item(number: 7, name: nil, data: [0xBB, 0xAA], size: 20),
    ]

    /// The numbers of the rows that meet the conditions.
    private static func expect(
        _ conditions: [Condition], _ arguments: [Value], ids: [Int64] = [], _ numbers: [Int64], in store: any Store,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let query = Query(Sample.item, [Sample.number], where: conditions, order: [.ascending(Sample.number)])
        let found: [Int64] = try store.read(.find(query.read(arguments, ids: ids)) { .done(try $0.map { try $0.integer(0) }) })
        #expect(found == numbers, sourceLocation: sourceLocation)
    }

    static var conditions: [StoreContract] {
        [
            StoreContract("equal, for each kind of column; null equals nothing") { fixture in
                let store = try await fixture.open(with: rows)
                try expect([.equal(Sample.size)], [.integer(20)], [2, 7], in: store)
                try expect([.equal(Sample.name)], [.text("two")], [2, 6], in: store)
                try expect([.equal(Sample.name)], [.text("")], [5], in: store)
                try expect([.equal(Sample.data)], [.bytes([0xAA, 0x00, 0xCC])], [3], in: store)
                try expect([.equal(Sample.data)], [.bytes([])], [4], in: store)
                try expect([.equal(Sample.size)], [.null], [], in: store)
                try expect([.equal(Sample.size)], [.integer(99)], [], in: store)
            },
            StoreContract("hasValue, which takes no argument") { fixture in
                let store = try await fixture.open(with: rows)
                try expect([.hasValue(Sample.size, 20)], [], [2, 7], in: store)
                try expect([.hasValue(Sample.size, -5)], [], [4], in: store)
                try expect([.hasValue(Sample.size, 99)], [], [], in: store)
                try expect([.hasValue(Sample.size, 20), .equal(Sample.name)], [.text("two")], [2], in: store)
            },
            StoreContract("present and absent") { fixture in
                let store = try await fixture.open(with: rows)
                try expect([.present(Sample.name)], [], [1, 2, 3, 5, 6], in: store)
                try expect([.absent(Sample.name)], [], [4, 7], in: store)
                try expect([.present(Sample.data), .absent(Sample.name)], [], [4, 7], in: store)
                try expect([.absent(Sample.size)], [], [6], in: store)
            },
            StoreContract("less, atLeast and between, without rows that have null") { fixture in
                let store = try await fixture.open(with: rows)
                try expect([.less(Sample.size)], [.integer(10)], [4, 5], in: store)
                try expect([.atLeast(Sample.size)], [.integer(20)], [2, 3, 7], in: store)
                try expect([.between(Sample.size)], [.integer(0), .integer(20)], [1, 2, 5, 7], in: store)
                try expect([.between(Sample.size)], [.integer(20), .integer(10)], [], in: store)
                try expect([.less(Sample.size)], [.null], [], in: store)
                try expect([.between(Sample.data)], [.bytes([0xAA]), .bytes([0xAA, 0xFF])], [1, 2, 3], in: store)
                try expect([.less(Sample.data)], [.bytes([0xAA, 0x01])], [1, 3, 4], in: store)
            },
            StoreContract("hasPrefix, of bytes of any value") { fixture in
                let store = try await fixture.open(with: rows)
                try expect([.hasPrefix(Sample.data)], [.bytes([0xAA])], [1, 2, 3], in: store)
                try expect([.hasPrefix(Sample.data)], [.bytes([0xAA, 0x00])], [3], in: store)
                try expect([.hasPrefix(Sample.data)], [.bytes([0xFF])], [5], in: store)
                try expect([.hasPrefix(Sample.data)], [.bytes([])], [1, 2, 3, 4, 5, 7], in: store)
                try expect([.hasPrefix(Sample.data)], [.bytes([0xAA, 0xBB, 0xCC])], [], in: store)
            },
            StoreContract("idAmong: one, many, repeated, unknown and no ids") { fixture in
                let store = try fixture.open()
                let ids = try await store.commit(.apply(rows.map(\.insert)) { $0 })
                try expect([.idAmong], [], ids: [ids[4], ids[0], ids[4], 4711, -1], [1, 5], in: store)
                try expect([.idAmong], [], ids: [], [], in: store)
                try expect([.idAmong], [], ids: [ids[2]], [3], in: store)
                try expect([.idAmong], [], ids: [4711], [], in: store)
                try expect([.idAmong], [], ids: ids + Array(1000..<30_000), [1, 2, 3, 4, 5, 6, 7], in: store)
            },
            StoreContract("among: the values of any integer column; null is among none") { fixture in
                let store = try await fixture.open(with: rows)
                try expect([.among(Sample.size)], [], ids: [20, 0, 20, 99], [2, 5, 7], in: store)
                try expect([.among(Sample.size)], [], ids: [], [], in: store)
                try expect([.among(Sample.size)], [], ids: [20], [2, 7], in: store)
                try expect([.present(Sample.name), .among(Sample.size), .equal(Sample.name)], [.text("two")], ids: [20], [2], in: store)
                try expect([.equal(Sample.name), .among(Sample.size)], [.text("two")], ids: [20, -5], [2], in: store)
                let lowest = Query(
                    Sample.item, [.column(Sample.size), .minimum(Sample.number)], where: [.among(Sample.size)], group: Sample.size)
                let found = try store.read(.find(lowest(ids: [20, 10])) { .done(try $0.map { [try $0.integer(0), try $0.integer(1)] }) })
                #expect(Set(found) == [[10, 1], [20, 2]])
            },
            StoreContract("All conditions are met; arguments are taken in their order") { fixture in
                let store = try fixture.open()
                let ids = try await store.commit(.apply(rows.map(\.insert)) { $0 })
                try expect(
                    [.equal(Sample.size), .idAmong, .present(Sample.name), .between(Sample.number), .hasPrefix(Sample.data)],
                    [.integer(20), .integer(1), .integer(6), .bytes([0xAA])], ids: ids, [2], in: store)
                try expect(
                    [.between(Sample.number), .absent(Sample.name), .less(Sample.size)], [.integer(1), .integer(7), .integer(20)], [4],
                    in: store)
            },
        ]
    }
}
