package import Storage
import TestSupport
import Testing
package import WakuCrypto

/// Opens the database for a folder, creating it if necessary. Several stores of one database may be open at once.
package typealias OpenStore = @Sendable (_ folder: String, _ storageKey: SymmetricKey, _ parts: [StorePart]) throws -> any TransferableStore

/// A requirement on every engine of a store, with its test. An engine's suite runs ``all`` of them.
package struct StoreContract: Sendable, CustomTestStringConvertible {
    package let name: String
    private let check: @Sendable (ContractFixture) async throws -> Void

    init(_ name: String, _ check: @escaping @Sendable (ContractFixture) async throws -> Void) {
        self.name = name
        self.check = check
    }

    package static var all: [StoreContract] {
        order + combinators + conflicts + conditions + outputs + mutations + pruning + reading + sealing + migrations + moving + webPushKeys
            + deliveries
            + webPushOrigins + v01Records + queryTopics
    }

    package func run(on open: @escaping OpenStore) async throws {
        try await check(ContractFixture(open))
    }

    package var testDescription: String { name }
}

/// A separate database for one requirement.
final class ContractFixture: Sendable {
    let folder: TemporaryFolder
    private let other: TemporaryFolder
    let storageKey = SymmetricKey.random()
    private let engine: OpenStore

    init(_ engine: @escaping OpenStore) throws {
        folder = try TemporaryFolder()
        other = try TemporaryFolder()
        self.engine = engine
    }

    func open(_ parts: [StorePart] = [Sample.part], storageKey: SymmetricKey? = nil) throws -> any TransferableStore {
        try engine(folder.path, storageKey ?? self.storageKey, parts)
    }

    /// Another database of the same engine, with the same storage key.
    func openOther(_ parts: [StorePart]) throws -> any TransferableStore {
        try engine(other.path, storageKey, parts)
    }

    /// A store with these rows of ``Sample``.
    func open(with rows: [Sample.Item]) async throws -> any Store {
        let store = try open()
        try await store.commit(.change(rows.map(\.insert)))
        return store
    }
}
