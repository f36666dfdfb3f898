import AdminProtocol
import Foundation
import NodeAssembly
import PushNode
import SessionServer
import StatusServer
import StatusV01Server
import Storage
import StoreSQLite
import Waku
import WakuCrypto

/// The store that registrations are imported into, with or without a running daemon.
struct ImportTarget {
    static let batchLimit = 500

    struct Counts: Encodable {
        var imported = 0
        /// Stored with the same or a higher version.
        var kept = 0
    }

    let store: SQLiteStore
    private let folder: String

    /// Creates the database if there is none.
    init(folder: String, _ identity: PrivateKey) throws {
        self.folder = folder
        if !FileManager.default.fileExists(atPath: DataFolder.databasePath(in: folder)) {
            let lock = try DataFolder(locking: folder)
            defer { lock.unlock() }
            try NodeAssembly.store(in: folder, of: identity).close()
        }
        store = try NodeAssembly.existingStore(in: folder, of: identity)
    }

    /// Stores what is newer than what is stored.
    func merge(_ batch: [RegistrationsFile.Entry], _ counts: inout Counts) async throws {
        let (registrations, records) = (StatusServer.Registrations(store.sealer), StatusV01Server.Records(store.sealer))
        let subscriptions = SessionServer.Subscriptions(store.sealer)
        let commands = batch.map { entry in
            switch entry {
            case .registration(let record): registrations.merge(record)
            case .v01(let record): records.merge(record)
            case .subscription(let record, let service):
                subscriptions.merge(record, service, at: Timestamp.now().rawValue / 1_000_000_000)
            case .leftName(let left): SessionServer.Subscriptions.merge(left)
            }
        }
        for result in await store.commitEach(commands) {
            if try result.get() { counts.imported += 1 } else { counts.kept += 1 }
        }
    }

    /// Has the daemon ask for messages since then when it starts for the first time.
    func catchUp(since time: Date) async throws {
        // Files may have any time.
        let seconds = min(max(time.timeIntervalSince1970, 0), Date.now.timeIntervalSince1970)
        try await store.commit(RelayCursors.begin(at: Timestamp(rawValue: Int64(seconds) * 1_000_000_000)))
    }

    /// Tells a running daemon to use what was imported.
    func finish() async throws {
        let client = try AdminClient(folder: folder)
        guard try await client.status() != nil else { return }
        let _: AdminAPI.Count = try await client.post("/registrations/changed", [String]())
    }
}
