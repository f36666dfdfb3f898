import PushNode
import Foundation
import NodeAssembly
import StatusServer
import Storage
import StoreSQLite
import Core
import WakuCrypto

/// The store that registrations are imported into, with or without a running daemon.
///
/// Rows are spread over the indexes, so that a commit changes many pages: without a daemon, commits are as large as memory allows. With a running
/// daemon they are small, because it waits for each. During a commit, entries for the next one are read.
final class ImportTarget {
    private static let limitBesideDaemon = 500
    private static let limitAlone = 50_000
    private static let byteLimit = 32 << 20

    struct Counts: Encodable {
        var imported = 0
        /// The number of entries already stored with the same or a higher version.
        var kept = 0
        /// The number of entries with hashes under the look-up key of another database, which would never be found.
        var leftOut = 0
        /// The number of registrations that this release can't parse.
        var unparsable = 0
    }

    let store: any Store
    private(set) var counts = Counts()
    private let folder: String
    /// Until it is released, nobody replaces the store, which is not used afterwards.
    let hold: StoreHold
    private let batchLimit: Int
    private var batch: [StoreCommand<Bool>] = []
    private var batchByteCount = 0
    private var underWay: Task<[Result<Bool, StoreError>], Never>?

    /// Creates the database if there is none.
    init(folder: String, at location: StoreLocation, _ identity: PrivateKey) async throws {
        self.folder = folder
        hold = try await StoreHold(folder)
        guard hold.isBesideDaemon else {
            store = try NodeAssembly.store(at: location, in: folder, of: identity)
            batchLimit = Self.limitAlone
            try (store as? SQLiteStore)?.setCache(mebibytes: 256)
            return
        }
        store = try NodeAssembly.existingStore(at: location, in: folder, of: identity)
        batchLimit = Self.limitBesideDaemon
        // A commit: PostgreSQL knows the writer from then on, and refuses it after a command with exclusive access, which may have re-encrypted the rows.
        if let obstacle = try await store.commit(StoreTransfer.obstacle()) { throw StoreError(code: .unsuitable, message: obstacle) }
    }

    /// Stores the entry if it is newer than the stored one, at the latest in ``finish()``.
    func merge(_ entry: RegistrationsFile.Entry) async throws {
        if let key = entry.lookUpKey, key != store.sealer.lookUpKeyMark {
            counts.leftOut += 1
            return
        }
        guard let merge = entry.merge else {
            counts.unparsable += 1
            return
        }
        batch.append(merge(store.sealer))
        batchByteCount += entry.byteCount
        if batch.count >= batchLimit || batchByteCount >= Self.byteLimit { try await commit() }
    }

    private func commit() async throws {
        let commands = batch
        (batch, batchByteCount) = ([], 0)
        try await endCommit()
        underWay = Task { [store] in await store.commitEach(commands) }
    }

    private func endCommit() async throws {
        guard let results = await underWay?.value else { return }
        underWay = nil
        for result in results {
            if try result.get() { counts.imported += 1 } else { counts.kept += 1 }
        }
    }

    /// Stores the remaining entries, and has a running daemon load the stored ones, also when an error prevented others.
    func finish() async throws {
        do {
            try await commit()
            try await endCommit()
        } catch {
            try? await tellDaemon()
            throw error
        }
        try await tellDaemon()
    }

    private func tellDaemon() async throws {
        let client = try AdminClient(folder: folder)
        guard try await client.status() != nil else { return }
        let _: AdminAPI.Count = try await client.post(
            "/registrations/changed", [String](), timeout: AdminClient.workLimit)
    }
}
