import Storage
import Testing

extension StoreContract {
    static var combinators: [StoreContract] {
        [
            StoreContract("Outcomes get the ids of inserted rows, in the order of the changes") { fixture in
                let store = try fixture.open()
                let name = Mutation(Sample.item, .upsert([Sample.number, Sample.name]))
                let ids = try await store.commit(
                    .apply([
                        Sample.Item(number: 7).insert, name(.integer(8), .text("eight")), Sample.Item(number: 9).insert,
                    ]) { $0 })
                let find = Query(Sample.item, [.id], where: [.equal(Sample.number)])
                let stored = try store.read(
                    .read([find(.integer(7)), find(.integer(9))]) { found in .done(try found.map { try $0[0].integer(0) }) })
                #expect(ids == stored)
            },
            StoreContract("map changes only the outcome") { fixture in
                let store = try fixture.open()
                let id = try await store.commit(Sample.add(1).map { "row \($0)" })
                #expect(id == "row 1")
                #expect(try await store.commit(Sample.numbers().map(\.count)) == 1)
            },
            StoreContract("then: the changes of both are stored together, the second sees the rows as they were before the first") {
                fixture in
                let store = try fixture.open()
                let command = StoreCommand.change([Sample.Item(number: 1).insert], "first").then { first in
                    Sample.numbers().then { numbers in
                        .apply([Sample.Item(number: 2).insert, Sample.Item(number: 3).insert]) { (first, numbers, $0) }
                    }
                }
                let (first, numbers, ids) = try await store.commit(command)
                #expect(first == "first" && numbers.isEmpty && ids.count == 2)
                #expect(try store.read(Sample.numbers()) == [1, 2, 3])
                let find = Query(Sample.item, [.id], where: [.atLeast(Sample.number)], order: [.ascending(.id)])
                let stored: [Int64] = try store.read(.find(find(.integer(2))) { .done(try $0.map { try $0.integer(0) }) })
                #expect(ids == stored)
            },
            StoreContract("then: ids of the first command's rows are not known to the second") { fixture in
                let store = try fixture.open()
                let (first, second) = try await store.commit(Sample.add(1).then { first in Sample.add(2).map { (first, $0) } })
                #expect(first == 0 && second > 0)
                #expect(try store.read(Sample.numbers()) == [1, 2])
            },
            StoreContract("then: when the second fails, no change of the first is stored") { fixture in
                let store = try fixture.open()
                let command = StoreCommand.change([Sample.Item(number: 1).insert]).then { () -> StoreCommand<Void> in failing() }
                await #expect(throws: StoreError.self) { try await store.commit(command) }
                #expect(try store.read(Sample.numbers()).isEmpty)
            },
            StoreContract("and: both see the rows as they were before, each has its own inserted ids, and the changes are stored together")
            {
                fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 0, size: 5)])
                let both = Sample.increment(0).and(Sample.numbers().then { numbers in Sample.add(1).map { (numbers, $0) } })
                let ((size, (numbers, first)), second) = try await store.commit(both.and(Sample.add(2)))
                #expect(size == 5 && numbers == [0])
                #expect(first > 0 && second > 0 && first != second)
                #expect(try store.read(Sample.numbers()) == [0, 1, 2])
                #expect(try store.read(Sample.size(of: 0)) == 6)
                await #expect(throws: StoreError.self) { try await store.commit(Sample.add(3).and(failing() as StoreCommand<Int64>)) }
                await #expect(throws: StoreError.self) { try await store.commit((failing() as StoreCommand<Int64>).and(Sample.add(3))) }
                #expect(try store.read(Sample.numbers()) == [0, 1, 2])
            },
            StoreContract("then besides: continues with the other command, or without it") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 0, size: 5)])
                func unless(_ size: Int64, _ command: StoreCommand<Int64>) -> StoreCommand<Int64> {
                    Sample.size(of: 0).then(besides: command) { found, rest in found == size ? .done(-1) : try rest() }
                }
                #expect(try await store.commit(unless(5, Sample.increment(0))) == -1)
                #expect(try store.read(Sample.size(of: 0)) == 5)
                #expect(try await store.commit(unless(6, Sample.increment(0))) == 5)
                #expect(try await store.commit(unless(5, Sample.add(1))) > 0)
                #expect(try await store.commit(unless(6, failing())) == -1)
                await #expect(throws: StoreError.self) { try await store.commit(unless(7, failing())) }
                #expect(try store.read(Sample.numbers()) == [0, 1])
            },
            StoreContract("each: every command has its outcome with its own inserted ids, however many steps it takes") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 0, size: 5)])
                let commands: [StoreCommand<[Int64]>] = [
                    .apply([Sample.Item(number: 1).insert, Sample.Item(number: 2).insert]) { $0 },
                    Sample.increment(0).map { [$0] },
                    .done([42]),
                    Sample.numbers().then { numbers in .apply([Sample.Item(number: 3).insert]) { numbers + $0 } },
                    Sample.add(4).map { [$0] },
                ]
                let outcomes = try await store.commit(.each(commands))
                let find = Query(Sample.item, [.id], where: [.present(Sample.number)], order: [.ascending(Sample.number)])
                let ids: [Int64] = try store.read(.find(find()) { .done(try $0.map { try $0.integer(0) }) })
                #expect(ids.count == 5)
                // The fourth sees the rows as they were before the first.
                #expect(outcomes == [[ids[1], ids[2]], [5], [42], [0, ids[3]], [ids[4]]])
                #expect(try store.read(Sample.size(of: 0)) == 6)
            },
            StoreContract("each and all: when one fails, no change is stored") { fixture in
                let store = try fixture.open()
                await #expect(throws: StoreError.self) {
                    try await store.commit(StoreCommand<[Int64]>.each([Sample.add(1), failing(), Sample.add(2)]))
                }
                await #expect(throws: StoreError.self) {
                    try await store.commit(.all([Sample.add(1).map { _ in }, Sample.numbers().then { _ in failing() }]))
                }
                #expect(try store.read(Sample.numbers()).isEmpty)
            },
            StoreContract("each and all of none, and of very many") { fixture in
                let store = try fixture.open()
                #expect(try await store.commit(StoreCommand<[Int64]>.each([])) == [])
                try await store.commit(.all([]))
                let ids = try await store.commit(
                    StoreCommand<[Int64]>.each((0..<5000).map { number in Sample.size(of: number).then { _ in Sample.change(number) } }))
                #expect(ids == Array(0..<5000))
                #expect(try store.read(Sample.numbers()) == Array(0..<5000))
            },
        ]
    }
}

extension Sample {
    fileprivate static func change(_ number: Int64) -> StoreCommand<Int64> {
        .change([Item(number: number).insert], number)
    }
}
