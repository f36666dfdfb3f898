import NodeAssembly
import StorePostgreSQL
import TestSupport

/// The engines that a node is tested with.
enum StoreEngine: CaseIterable {
    case sqlite, postgreSQL

    /// Of a new database.
    func location() async throws -> StoreLocation {
        switch self {
        case .sqlite: .dataFolder
        case .postgreSQL: .postgreSQL(try PostgreSQLAddress(try await PostgreSQLServer.shared().makeDatabase()))
        }
    }
}
