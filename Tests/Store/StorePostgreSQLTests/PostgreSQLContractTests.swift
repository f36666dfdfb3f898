import StoreContract
import Testing

@testable import StorePostgreSQL

@Suite("PostgreSQL as an engine of a store", .timeLimit(.minutes(5)))
struct PostgreSQLContractTests {
    @Test("StoreContract", arguments: StoreContract.all)
    func contract(requirement: StoreContract) async {
        await #expect(throws: Never.self) {
            try await requirement.run { folder, storageKey, parts in
                try PostgreSQLStore(PostgreSQLAddress(Database.address(of: folder)), storageKey: storageKey, parts: parts)
            }
        }
    }
}
