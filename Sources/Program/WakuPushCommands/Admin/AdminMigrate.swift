import ArgumentParser
import Cluster
import Foundation
import NodeAssembly
import PushNode
import Storage
import StorePostgreSQL

extension Admin {
    struct Migrate: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Moves a stopped node's store from its data folder to PostgreSQL, or back; or finishes an upgrade of nodes that share one.",
            discussion: """
                With --to, everything is moved: registrations, waiting notifications, what was answered and delivered, and what the node is to catch up \
                on. Every row is compared afterwards. Rows that only save work, such as the keys of topics, are left behind: the node computes them \
                again. Then the old store is marked, so that no daemon starts with it by mistake. What is interrupted is repeated: it continues \
                where it ended. The target must be empty, or be what an earlier move left behind.

                With --finish, what only older releases need is removed from a PostgreSQL database, while nodes of this release go on: a new \
                release only adds to its tables when it starts, so that nodes of two releases can share it during an upgrade. Afterwards older \
                releases refuse the database. It is refused while nodes of another release share it.

                EXAMPLES
                  waku-push admin migrate --data data --identity id.key \\
                    --to postgresql://push@db.example/push
                  waku-push admin migrate --identity id.key \\
                    --store postgresql://push@db.example/push --to data
                  waku-push admin migrate --finish --store postgresql://push@db.example/push
                """)

        /// A node that has not renewed its lease for this many seconds is considered stopped.
        private static let silenceLimit = 60

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "Where to: a connection string of PostgreSQL, as in serve's --store, or a data folder.") var to: String?
        @Flag(help: "Remove from a PostgreSQL database what only older releases need.") var finish = false

        private struct Report: Encodable {
            let from, to: String
            let rows: [String: Int]
            let leftBehind: [String: Int]
        }

        private struct FinishReport: Encodable {
            let store: String
            let finished: [String]
        }

        func validate() throws {
            guard (to != nil) != finish else { throw ValidationError("give one of --to and --finish") }
        }

        func execute() async throws {
            _ = try await audited(.migrate, hasChanged: { $0 }) {
                guard let to else { return try await finishMigrations() }
                try await move(to: to)
                return true
            }
        }

        // MARK: Upgrades

        /// - Returns: Whether there was anything to finish.
        private func finishMigrations() async throws -> Bool {
            guard case .postgreSQL(let address) = try await location() else {
                throw CommandFailure(.usage, "a database in a data folder needs no --finish: its node does that when it starts")
            }
            let others = try nodes(sharing: address).filter { node in
                node.state != .ended && node.secondsSinceRenewal < Self.silenceLimit && node.version != Version.current
            }
            guard others.isEmpty else {
                let names = others.map { "\($0.name) (\($0.version))" }.joined(separator: ", ")
                throw CommandFailure(
                    .unavailable,
                    "nodes of another release than \(Version.current) share the database: \(names): upgrade or stop them first")
            }
            let finished = try PostgreSQLStore.finishMigrations(at: address, parts: NodeAssembly.parts)
            let place = Place(.postgreSQL(address), folder: "").description
            if admin.json {
                try Output.json(FinishReport(store: place, finished: finished))
            } else {
                Output.line(finished.isEmpty ? "\(place): nothing to finish" : "\(place): finished \(finished.joined(separator: ", "))")
            }
            return !finished.isEmpty
        }

        private func nodes(sharing address: PostgreSQLAddress) throws(StoreError) -> [ClusterOverview.Node] {
            let database = ClusterDatabase(address, configuration: ClusterConfiguration(), outbox: ClusterNode.outbox)
            defer { database.close() }
            do {
                return try database.overview().nodes
            } catch {
                // The store was never shared by nodes.
                guard error.code == .missing else { throw error }
                return []
            }
        }

        // MARK: Moving

        private func move(to: String) async throws {
            let identity = try admin.requiredIdentity("rows are encrypted again, with keys derived from it")
            let target = try Place(text: to)
            let source = try await source(of: target)
            let locks = try [source, target].compactMap { try $0.lock() }
            defer { for lock in locks { lock.unlock() } }
            let key = Sealer.storageKey(of: identity)
            // Opened as existing first, so that it is not created.
            try NodeAssembly.existingStore(at: source.location, in: source.folder, of: identity).close()
            let from = try source.location.openForTransfer(in: source.folder, storageKey: key, parts: NodeAssembly.parts)
            defer { try? from.close() }
            let into = try target.location.openForTransfer(in: target.folder, storageKey: key, parts: NodeAssembly.parts)
            defer { try? into.close() }
            if case .postgreSQL(let address) = source.location {
                // The marks of posted notifications are moved with the outbox.
                try ClusterDatabase.leaveCluster(at: address, outbox: ClusterNode.outbox)
            }
            let progress = ProgressBar()
            let transfer = StoreTransfer(from: from, to: into, named: target.description) { done in
                progress.show("\(done.rows) of \(done.total) rows", Double(done.rows) / Double(max(done.total, 1)))
            }
            let moved = try await transfer.run()
            progress.clear()
            try print(Report(from: source.description, to: target.description, rows: moved.moved, leftBehind: moved.leftBehind))
        }

        /// A move to a folder reads from PostgreSQL. A move to PostgreSQL reads from the data folder, even if the daemon's configuration already
        /// names the new store.
        private func source(of target: Place) async throws -> Place {
            let isFromFolder = target.location != .dataFolder && admin.store == nil
            let location = isFromFolder ? StoreLocation.dataFolder : try await self.location()
            switch (location, target.location) {
            case (.dataFolder, .postgreSQL), (.postgreSQL, .dataFolder): return Place(location, folder: folder)
            case (.dataFolder, .dataFolder):
                throw CommandFailure(.usage, "--to is a folder: give the PostgreSQL database by --store, or use admin backup and restore")
            case (.postgreSQL, .postgreSQL): throw CommandFailure(.usage, "both stores are PostgreSQL, which has its own tools: pg_dump")
            }
        }

        private func print(_ report: Report) throws {
            if admin.json { return try Output.json(report) }
            func fields(_ counts: [String: Int], _ text: String) -> [(String, String)] {
                counts.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value) rows\(text)") }
            }
            Output.fields(
                [("from", report.from), ("to", report.to)] + fields(report.rows, "")
                    + fields(report.leftBehind, " left behind: the node computes them again"))
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
    init(text: String) throws(StoreError) {
        let isPath = text.hasPrefix("/") || text.hasPrefix(".")
        let isAddress = text.contains("://") || (!isPath && text.contains("="))
        self.init(isAddress ? .postgreSQL(try PostgreSQLAddress(text)) : .dataFolder, folder: isAddress ? "" : text)
    }

    /// PostgreSQL has a lock of its own.
    func lock() throws(StoreError) -> DataFolder? {
        location == .dataFolder ? try DataFolder(locking: folder, excludesCommands: true) : nil
    }

    var description: String {
        switch location {
        case .dataFolder: "data folder \(folder)"
        case .postgreSQL(let address): "PostgreSQL (\(address))"
        }
    }
}
