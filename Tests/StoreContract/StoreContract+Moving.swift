import NodeAssembly
import Storage
import Testing
import WakuCrypto

extension StoreContract {
    /// The contents of each sealed row, opened with the binding that its table declares; rows of caches are counted.
    private static func contents(of store: any TransferableStore) throws -> [String: [[UInt8]]] {
        var contents: [String: [[UInt8]]] = [:]
        for sealed in NodeAssembly.parts.sealedRows {
            contents[sealed.table.name] = []
            try store.scan(sealed.contents()()) { row in
                contents[sealed.table.name]?.append(try sealed.open(row, by: store.sealer))
                return true
            }
        }
        return contents
    }

    private static func counts(_ store: any TransferableStore) throws -> [String: Int] {
        Dictionary(
            uniqueKeysWithValues: try store.tables.map { table in
                (table.name, try store.read(.find(Query(table, [.count])()) { .done(Int(try $0[0].integer(0))) }))
            })
    }

    static var moving: [StoreContract] {
        [
            StoreContract("Every table of every part is moved with rows that the node wrote; rows of caches are left behind and counted") {
                fixture in
                let (source, target) = (try fixture.open(NodeAssembly.parts), try fixture.openOther(NodeAssembly.parts))
                try await NodeRows.write(to: source)
                let counts = try counts(source)
                let contents = try contents(of: source)
                #expect(counts.filter { $0.value == 0 }.isEmpty, "a table without rows is not tested: write some in NodeRows")
                #expect(contents.allSatisfy { !$0.value.isEmpty })
                // From an earlier move of the target: rows of registrants that have left since then must not remain.
                try await NodeRows.writeTopicKey("left", to: target)

                let report = try await StoreTransfer(from: source, to: target, named: "there").run()
                #expect(report.leftBehind == ["topic_key": counts["topic_key"]])
                #expect(report.moved == counts.filter { $0.key != "topic_key" })
                #expect(try Self.counts(target) == counts.merging(["topic_key": 0]) { $1 })
                #expect(try Self.contents(of: target) == contents)
                #expect(try target.read(StoreTransfer.obstacle()) == nil)

                // Moves back, into rows that an earlier move left there.
                let back = try await StoreTransfer(from: target, to: source, named: "here").run()
                #expect(back.leftBehind == ["topic_key": 0])
                #expect(try Self.contents(of: source) == contents)
                #expect(try Self.counts(source)["topic_key"] == 0)
            }
        ]
    }
}
