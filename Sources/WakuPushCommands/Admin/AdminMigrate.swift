import ArgumentParser
import Foundation
import NodeAssembly
import PushNode
import Storage
import StorePostgreSQL
import StoreSQLite
import WakuCrypto

extension Admin {
    struct Migrate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Moves a stopped node's store from its data folder to PostgreSQL, or back.",
            discussion: """
                Everything is moved: registrations, waiting notifications, what was answered and delivered, and what the node is to catch up \
                on. Every row is compared afterwards. Then the old store is marked, so that no daemon starts with it by mistake. What is \
                interrupted is repeated: it continues where it ended. The target must be empty, or be what an earlier move left behind.

                EXAMPLES
                  waku-push admin migrate --data data --identity id.key \\
                    --to postgresql://push@db.example/push
                  waku-push admin migrate --identity id.key \\
                    --store postgresql://push@db.example/push --to data
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "Where to: a connection string of PostgreSQL, as in serve's --store, or a data folder.") var to: String

        private struct Report: Encodable {
            let from, to: String
            let rows: [String: Int]
        }

        func run() async throws {
            try await reportingFailures {
                let identity = try admin.requiredIdentity("rows are encrypted anew with keys derived from it")
                let target = try Place(text: to)
                let source = try source(of: target)
                let locks = try [source, target].compactMap { try $0.lock() }
                defer { for lock in locks { lock.unlock() } }
                let key = Sealer.storageKey(of: identity)
                // Not made by opening it.
                try source.location.openExisting(in: source.folder, storageKey: key, parts: NodeAssembly.parts).close()
                let from = try source.location.openForTransfer(in: source.folder, storageKey: key, parts: NodeAssembly.parts)
                defer { try? from.close() }
                let into = try target.location.openForTransfer(in: target.folder, storageKey: key, parts: NodeAssembly.parts)
                defer { try? into.close() }
                let progress = ProgressBar()
                let transfer = StoreTransfer(from: from, to: into, named: target.description) { done in
                    progress.show("\(done.rows) of \(done.total) rows", Double(done.rows) / Double(max(done.total, 1)))
                }
                let rows = try await transfer.run()
                progress.clear()
                try print(Report(from: source.description, to: target.description, rows: rows))
            }
        }

        /// A folder's contents come from PostgreSQL. What goes to PostgreSQL comes from the data folder: that the daemon's configuration may
        /// already name its new store does not matter.
        private func source(of target: Place) throws -> Place {
            let isFromFolder = target.location != .dataFolder && admin.store == nil
            let location = isFromFolder ? StoreLocation.dataFolder : try admin.location()
            switch (location, target.location) {
            case (.dataFolder, .postgreSQL), (.postgreSQL, .dataFolder): return Place(location, folder: admin.folder(of: command))
            case (.dataFolder, .dataFolder):
                throw CommandFailure(.usage, "--to is a folder: give the PostgreSQL database by --store, or use admin backup and restore")
            case (.postgreSQL, .postgreSQL): throw CommandFailure(.usage, "both stores are PostgreSQL, which has its own tools: pg_dump")
            }
        }

        private func print(_ report: Report) throws {
            if admin.json { return try Output.json(report) }
            let rows = report.rows.filter { $0.value > 0 }.sorted { $0.key < $1.key }
            Output.fields([("from", report.from), ("to", report.to)] + rows.map { ($0.key, "\($0.value) rows") })
        }
    }
}

/// A store on the command line.
private struct Place: CustomStringConvertible {
    let location: StoreLocation
    /// Not used with PostgreSQL.
    let folder: String

    init(_ location: StoreLocation, folder: String) {
        (self.location, self.folder) = (location, folder)
    }

    /// A URI, or keywords with values, is a connection string; anything else a folder. One with `=` in its name is given as `./a=b`.
    ///
    /// - Throws: `StoreError`
    init(text: String) throws(StoreError) {
        let isPath = text.hasPrefix("/") || text.hasPrefix(".")
        let isAddress = text.contains("://") || (!isPath && text.contains("="))
        self.init(isAddress ? .postgreSQL(try PostgreSQLAddress(text)) : .dataFolder, folder: isAddress ? "" : text)
    }

    /// PostgreSQL has a lock of its own.
    ///
    /// - Throws: `StoreError`
    func lock() throws(StoreError) -> DataFolder? {
        location == .dataFolder ? try DataFolder(locking: folder) : nil
    }

    var description: String {
        switch location {
        case .dataFolder: "data folder \(folder)"
        case .postgreSQL(let address): "PostgreSQL (\(address))"
        }
    }
}
