import NodeAssembly
import Storage
import Testing

struct PartMigrationTests {
    private struct Shape: Equatable {
        var columns: Set<String>
        var indexes: Set<String>

        init(_ table: Table) {
            (columns, indexes) = (Set(table.columns.map(\.name)), Set(table.indexes.map(\.name)))
        }
    }

    private func shapes(after migrations: [StorePart.Migration]) -> [String: Shape] {
        var shapes: [String: Shape] = [:]
        for step in migrations.flatMap(\.steps) {
            switch step {
            case .create(let table): shapes[table.name] = Shape(table)
            case .addColumn(let column, let table): shapes[table.name]?.columns.insert(column.name)
            case .createIndex(let index, let table): shapes[table.name]?.indexes.insert(index.name)
            case .neverReuseIDs: break
            case .drop(let table): shapes[table] = nil
            }
        }
        return shapes
    }

    /// A column that a migration adds, and the table does not list, would be left out when tables are moved to another store.
    @Test func migrationsEndWithTheDeclaredTables() {
        for part in NodeAssembly.parts {
            let declared = Dictionary(uniqueKeysWithValues: part.tables.map { ($0.name, Shape($0)) })
            #expect(shapes(after: part.migrations) == declared, "\(part.name)")
        }
    }
}
