import Storage
import Testing

extension StoreContract {
    private static let rows = [
        Sample.Item(number: 1, name: "b", data: [1, 2, 3], size: 10),
        Sample.Item(number: 2, name: "a", data: [], size: 20),
        Sample.Item(number: 3, name: "b", data: nil, size: 30),
        Sample.Item(number: 4, name: "größer", data: [9], size: nil),
        Sample.Item(number: 5, name: nil, data: [7, 7], size: 20),
    ]

    private static func values(_ read: Read, in store: any Store) throws -> [[Value]] {
        try store.read(.find(read) { .done($0.map(\.values)) })
    }

    private static func numbers(_ read: Read, in store: any Store) throws -> [Int64] {
        try store.read(.find(read) { .done(try $0.map { try $0.integer(0) }) })
    }

    static var outputs: [StoreContract] {
        [
            StoreContract("Values come back as they were written") { fixture in
                let items = [
                    Sample.Item(number: .min, name: "", data: [], size: .max),
                    Sample.Item(number: -1, name: "a 'quoted' \"name\"; -- \\ % _", data: Array(0...255), size: 0),
                    Sample.Item(number: 0, name: "日本語 👩‍👩‍👧 e\u{301}", data: [0, 0, 0], size: -1),
                    Sample.Item(number: .max, name: nil, data: nil, size: nil),
                ]
                let store = try await fixture.open(with: items)
                #expect(try store.read(Sample.items()) == items)
                let large = Sample.Item(
                    number: 7, name: String(repeating: "x", count: 100_000), data: Array(repeating: 5, count: 2_000_000))
                try await store.commit(.change([large.insert]))
                #expect(try store.read(Sample.items()).first { $0.number == 7 } == large)
            },
            StoreContract("Outputs of single rows: columns in any order, isPresent and byteCount") { fixture in
                let store = try await fixture.open(with: rows)
                let query = Query(
                    Sample.item,
                    [
                        .byteCount(Sample.name), .column(Sample.size), .isPresent(Sample.data), .byteCount(Sample.data),
                        .column(Sample.number),
                    ], order: [.ascending(Sample.number)])
                #expect(
                    try values(query(), in: store) == [
                        [.integer(1), .integer(10), .integer(1), .integer(3), .integer(1)],
                        [.integer(1), .integer(20), .integer(1), .integer(0), .integer(2)],
                        [.integer(1), .integer(30), .integer(0), .null, .integer(3)],
                        [.integer(8), .null, .integer(1), .integer(1), .integer(4)],
                        [.null, .integer(20), .integer(1), .integer(2), .integer(5)],
                    ])
            },
            StoreContract("small: the bytes of a column up to a size, otherwise null") { fixture in
                let store = try await fixture.open(with: rows)
                let query = Query(
                    Sample.item, [.small(Sample.data, byteLimit: 2), .column(Sample.number)], order: [.ascending(Sample.number)])
                let whole = Query(Sample.item, [.column(Sample.data)], order: [.ascending(Sample.number)])
                let expected = try values(whole(), in: store).map { row -> Value in
                    if case .bytes(let bytes) = row[0], bytes.count <= 2 { row[0] } else { .null }
                }
                #expect(try values(query(), in: store).map { $0[0] } == expected)
                #expect(Set(expected).count > 2)
                let one = Query(Sample.item, [.small(Sample.data, byteLimit: 2)], where: [.equal(Sample.number)])
                let commands = (1...5).map { number in
                    StoreCommand.find(one(.integer(Int64(number)))) { .done($0.first?.values[0]) }
                }
                // In one exchange, grouped.
                let found = try await store.commitEach(commands + commands).map { try $0.get() }
                #expect(found == expected + expected)
            },
            StoreContract("Commands that read more than an exchange has room for are decided") { fixture in
                let store = try await fixture.open(with: rows)
                let query = Query(Sample.item, [.column(Sample.number)], where: [.equal(Sample.number)])
                let commands = (1...5).map { number in
                    var read = query(.integer(Int64(number)))
                    read.expectedByteCount = number.isMultiple(of: 2) ? 0 : 6 << 20
                    return StoreCommand.find(read) { [read] rows in .find(read) { .done(rows + $0) } }
                }
                let found = try await store.commitEach(commands).map { try $0.get() }
                #expect(found.map(\.count) == [2, 2, 2, 2, 2])
            },
            StoreContract("Outputs of all rows: count, distinctCount, minimum and maximum; null when there is no row") { fixture in
                let store = try await fixture.open(with: rows)
                let outputs: [Query.Output] = [
                    .count, .distinctCount(Sample.name), .distinctCount(Sample.size), .minimum(Sample.size), .maximum(Sample.number),
                ]
                let all = Query(Sample.item, outputs)
                #expect(try values(all(), in: store) == [[.integer(5), .integer(3), .integer(3), .integer(10), .integer(5)]])
                let some = Query(Sample.item, outputs, where: [.atLeast(Sample.number)])
                #expect(try values(some(.integer(3)), in: store) == [[.integer(3), .integer(2), .integer(2), .integer(20), .integer(5)]])
                #expect(try values(some(.integer(9)), in: store) == [[.integer(0), .integer(0), .integer(0), .null, .null]])
            },
            StoreContract("group: a row for each value, null among them") { fixture in
                let store = try await fixture.open(with: rows)
                let query = Query(Sample.item, [.column(Sample.name), .count, .minimum(Sample.number)], group: Sample.name)
                #expect(
                    Set(try values(query(), in: store)) == [
                        [.text("b"), .integer(2), .integer(1)], [.text("a"), .integer(1), .integer(2)],
                        [.text("größer"), .integer(1), .integer(4)], [.null, .integer(1), .integer(5)],
                    ])
            },
            StoreContract("Order: ascending, descending, by several columns and by an output") { fixture in
                let store = try await fixture.open(with: rows)
                func order(_ order: Query.Order...) throws -> [Int64] {
                    let query = Query(Sample.item, [Sample.number], where: [.present(Sample.size)], order: order)
                    return try numbers(query(), in: store)
                }
                #expect(try order(.ascending(Sample.number)) == [1, 2, 3, 5])
                #expect(try order(.descending(Sample.number)) == [5, 3, 2, 1])
                #expect(try order(.descending(Sample.size), .ascending(Sample.number)) == [3, 2, 5, 1])
                #expect(try order(.ascending(Sample.size), .descending(.id)) == [1, 5, 2, 3])
                let byMinimum = Query(
                    Sample.item, [.column(Sample.name), .minimum(Sample.number)], where: [.present(Sample.name)], order: [.output(1)],
                    group: Sample.name)
                #expect(try values(byMinimum(limit: 2), in: store).map(\.[0]) == [.text("b"), .text("a")])
            },
            StoreContract("limit and offset") { fixture in
                let store = try await fixture.open(with: rows)
                let query = Query(Sample.item, [Sample.number], where: [.atLeast(Sample.number)], order: [.ascending(Sample.number)])
                #expect(try numbers(query(.integer(2), limit: 2), in: store) == [2, 3])
                #expect(try numbers(query(.integer(2), limit: 2, offset: 1), in: store) == [3, 4])
                #expect(try numbers(query(.integer(2), offset: 3), in: store) == [5])
                #expect(try numbers(query(.integer(2), limit: 0), in: store) == [])
                #expect(try numbers(query(.integer(2), limit: 10, offset: 10), in: store) == [])
            },
            StoreContract("Distinct rows, and an index to use") { fixture in
                let store = try await fixture.open(with: rows)
                let distinct = Query(
                    Sample.item, [.column(Sample.name)], where: [.present(Sample.name)], order: [.ascending(Sample.name)], isDistinct: true)
                #expect(try values(distinct(), in: store) == [[.text("a")], [.text("b")], [.text("größer")]])
                let indexed = Query(
                    Sample.item, [.column(Sample.size)], where: [.present(Sample.size)], order: [.ascending(Sample.size)],
                    index: "item_size")
                #expect(try numbers(indexed(), in: store) == [10, 20, 20, 30])
            },
            StoreContract("A column of an unexpected kind fails the command") { fixture in
                let store = try await fixture.open(with: rows)
                let query = Query(Sample.item, [Sample.name])
                #expect(throws: StoreError.self) { try numbers(query(), in: store) }
            },
        ]
    }
}
