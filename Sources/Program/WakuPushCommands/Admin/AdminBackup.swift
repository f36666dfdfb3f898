import ArgumentParser
import Foundation
import NodeAssembly
import PushNode
import Storage
import StorePostgreSQL
import StoreSQLite
import WakuCrypto

extension Admin {
    struct Backup: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Backs up the database into one file, while the daemon runs or not.",
            discussion: """
                The backup is a consistent snapshot with mode 0600. It is verified before the command ends; with --identity every encrypted \
                row is decrypted as well. A database of an earlier release is backed up as it is, before the daemon of this one migrates it. \
                A backup can't be restored without the node's key file: keep a separate copy of that.

                EXAMPLE
                  waku-push admin backup /backup/waku-push-2027-01-15 --data data \\
                    --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "The file to create. It must not exist.") var file: String

        func execute() async throws {
            try await requireDataFolder("back it up with pg_dump, or by its replication and archive")
            let identity = try admin.identityFile.map { try IdentityFile.read($0) }
            // Before an upgrade it is of the earlier release's database.
            let store = try NodeAssembly.existingStore(in: folder, of: identity, mayBeOlder: true)
            // On a full disk a backup to another one comes first, and its rows stay encrypted.
            let inspection = try await audited(.backup, isRecordRequired: false) {
                try StoreBackup.write(store, to: file, storageKey: identity.map(Sealer.storageKey))
            }
            if let obstacle = try store.read(StoreTransfer.obstacle()) {
                CommandFailure.report("warning: the backup is of a store that no daemon uses: \(obstacle)")
            }
            let bytes = (try? FileManager.default.attributesOfItem(atPath: file)[.size] as? Int) ?? 0
            if admin.json { return try Output.json(Report(file: file, bytes: bytes, inspection: inspection)) }
            Output.line("backup written to \(file), \(bytes / 1024) KiB")
            Output.fields(inspection.fields)
            Output.line("Keep the node's key file (--identity) too, in another place: without it the backup can't be decrypted, and")
            Output.line("with it everything can. Restore with waku-push admin restore.")
        }

        private struct Report: Encodable {
            let file: String
            let bytes: Int
            let inspection: StoreInspection
        }
    }

    struct Restore: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replaces the database with a backup, while no daemon runs.",
            discussion: """
                The backup is verified, and every encrypted row decrypted, before anything is replaced. The previous database is kept as \
                waku-push.sqlite.replaced in the data folder; delete it once the node works.

                When the daemon starts, it asks the relay's store for messages since the backup, and processes the registrations that it \
                still has. Notifications delivered since then may be delivered again. Session devices that unsubscribed since then \
                are subscribed again until their subscriptions expire, after at most 14 days.

                EXAMPLE
                  waku-push admin restore /backup/waku-push-2027-01-15 --data data \\
                    --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "The file that admin backup made.") var file: String

        func execute() async throws {
            try await requireDataFolder("restore it with pg_restore, or by its archive")
            let identity = try admin.requiredIdentity("it is needed to verify that every row can be decrypted")
            let locked = try DataFolder(locking: folder, excludesCommands: true)
            defer { locked.unlock() }
            let moved = obstacle(of: try? NodeAssembly.existingStore(in: folder, of: nil))
            let inspection = try await audited(.restore) {
                try StoreBackup.restore(file, into: locked, storageKey: Sealer.storageKey(of: identity), parts: NodeAssembly.parts)
            }
            // A backup of an older version is brought up to date at the daemon's start.
            if let obstacle = obstacle(of: try? NodeAssembly.existingStore(in: folder, of: identity)) {
                CommandFailure.report("warning: serve refuses it: \(obstacle)")
            }
            if let moved { CommandFailure.report("warning: the database that was replaced was not the one in use: \(moved)") }
            if !admin.json { Output.line("restored from \(file)") }
            try inspection.print(asJSON: admin.json)
        }

        /// Closes the store.
        private func obstacle(of store: (any Store)?) -> String? {
            defer { try? store?.close() }
            return try? store?.read(StoreTransfer.obstacle())
        }
    }

    struct Check: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Verifies the database, with or without a running node: its schema and integrity, and that each encrypted row can be decrypted.",
            discussion: """
                EXAMPLES
                  waku-push admin check --data data --identity id.key
                  waku-push admin check --file /backup/waku-push-2027-01-15 \\
                    --identity id.key

                EXIT CODES
                  0   the database is intact
                  65  something is damaged or of another origin, or the key is the wrong one
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "A backup file to verify instead of the data folder's database.") var file: String?

        func execute() async throws {
            let key = try admin.identityFile.map { Sealer.storageKey(of: try IdentityFile.read($0)) }
            let (inspection, damage): (StoreInspection, String)
            let location = file == nil ? try await location() : .dataFolder
            if case .postgreSQL(let address) = location {
                let store = try PostgreSQLStore(existing: address, storageKey: key, parts: NodeAssembly.parts)
                inspection = try store.inspect(isUnsealing: key != nil, limit: nil)
                damage = "PostgreSQL (\(address)) has damaged rows: restore a backup (pg_restore)"
            } else {
                let path = file ?? DataFolder.databasePath(in: folder)
                inspection = try StoreInspection(of: path, storageKey: key, parts: NodeAssembly.parts)
                damage = "the database at \(path) is damaged: restore a backup (waku-push admin restore)"
            }
            if file == nil, let store = try? NodeAssembly.existingStore(at: location, in: folder, of: nil),
                let obstacle = try? store.read(StoreTransfer.obstacle())
            {
                CommandFailure.report("warning: \(obstacle)")
            }
            try inspection.print(asJSON: admin.json)
            guard inspection.isWhole else { throw CommandFailure(.data, damage) }
        }
    }

    struct RotateStorageKey: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Re-encrypts all rows with a new storage key and rewrites the file, while no daemon runs.",
            discussion: """
                The storage key is derived from the node's key and a random salt; only the salt changes, so the node's public key stays the \
                same. An attacker who has the old storage key can't decrypt the new database, but one who has the node's key still can, \
                and existing backups are not changed. Needs free disk space of twice the database's size, in the data folder. With PostgreSQL, its \
                write-ahead log and the archive of it are not changed either.

                With --from the database is moved from that identity to the one of --identity, which then opens it and must be the first \
                --identity of serve. Registrations stay with the identity to which clients sent them: serve both. If it is interrupted and then fails \
                because the database belongs to another identity, the move is done: repeat it without --from, to erase the former contents.

                EXAMPLES
                  waku-push admin rotate-storage-key --data data --identity id.key
                  waku-push admin rotate-storage-key --data data --identity new.key \\
                    --from id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "The key file of the identity to which the database belongs now, to move it to that of --identity.") var from: String?

        func execute() async throws {
            let identity = try admin.requiredIdentity("the storage key is derived from the node's key")
            let location = try await self.location()
            // SQLite would write a copy of the database to /var/tmp or /tmp, which may be much smaller. It reads this when it first opens one.
            if location == .dataFolder { setenv("SQLITE_TMPDIR", folder, 0) }
            guard try location != .dataFolder || DatabaseFile.exists(at: DataFolder.databasePath(in: folder)) else {
                throw CommandFailure(.data, "there is no database in \(folder): has the daemon run with this data folder?")
            }
            let locked = try DataFolder(locking: folder, excludesCommands: true)
            defer { locked.unlock() }
            let old = try from.map { try IdentityFile.read($0) }
            guard old?.publicKey != identity.publicKey else {
                throw CommandFailure(.usage, "--from has the key of --identity: leave it out, or give the key of the former identity")
            }
            let move = old.map { StoreMove(from: $0, to: identity) }
            let key = Sealer.storageKey(of: old ?? identity)
            let count = try await audited(.rotateStorageKey) {
                do {
                    return switch location {
                    case .dataFolder: try StorageKeyRotation.run(key, in: locked, parts: NodeAssembly.parts, move)
                    case .postgreSQL(let address): try PostgreSQLKeyRotation.run(key, at: address, parts: NodeAssembly.parts, move)
                    }
                } catch let error as StoreError where error.code == .otherIdentity && move != nil {
                    throw CommandFailure(
                        .data, "\(error.message). If this move was interrupted before, it is done: repeat the command without --from")
                }
            }
            if admin.json { return try Output.json(["rows": count]) }
            if move != nil {
                return Output.line(
                    "\(count) rows are encrypted for the new identity: give it as the first --identity of serve.")
            }
            Output.line(
                "\(count) rows are encrypted with a new storage key. Existing backups can still be restored with the same key file.")
        }
    }
}

extension StoreInspection: FieldsReport {
    var fields: [(String, String)] {
        var fields = [("integrity", problems.isEmpty ? "ok" : "damaged: " + problems.joined(separator: "; "))]
        for (name, rows) in (rows ?? [:]).sorted(by: { $0.key > $1.key }) {
            fields.append(
                (name, rows.unreadable == 0 ? "\(rows.count), all decrypted" : "\(rows.unreadable) of \(rows.count) can't be decrypted"))
        }
        if rows == nil { fields.append(("sealed rows", "not decrypted: --identity is missing")) }
        if isRotationUnfinished {
            fields.append(("storage key", "its rotation was interrupted: run waku-push admin rotate-storage-key again"))
        }
        return fields
    }
}
