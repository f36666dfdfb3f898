import StoreContract
import StoreSQLite
import Testing

@Suite("SQLite as an engine of a store", .timeLimit(.minutes(5)))
struct SQLiteContractTests {
    @Test("StoreContract", arguments: StoreContract.all)
    func contract(requirement: StoreContract) async {
        await #expect(throws: Never.self) {
            try await requirement.run { folder, storageKey, parts in
                try SQLiteStore(folder: folder, storageKey: storageKey, parts: parts)
            }
        }
    }
}
