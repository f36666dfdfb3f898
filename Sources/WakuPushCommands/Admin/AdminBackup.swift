import ArgumentParser
import Foundation
import NodeAssembly
import Storage
import StoreSQLite

extension Admin {
    struct Backup: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copies the database into one file, while the node goes on.",
            discussion: """
                The copy holds what was committed when it began, has mode 0600, and is read whole before the command ends: with --identity \
                every sealed row is opened. It can't be read without the node's key file, of which you need a copy of its own.

                EXAMPLE
                  waku-push admin backup /backup/waku-push-2027-01-15 --data data \\
                    --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "The file to make. It must not exist.") var file: String

        func run() async throws {
            try await reportingFailures {
                let key = try admin.identityFile.map { Sealer.storageKey(of: try IdentityFile.read($0)) }
                let store = try admin.openStore(of: command, unsealing: key != nil)
                try StoreBackup.write(store, to: file)
                let inspection = try StoreInspection(of: file, storageKey: key, parts: NodeAssembly.parts)
                guard inspection.isWhole else {
                    throw CommandFailure(.data, "backup \(file) is as damaged as the database: see waku-push admin check")
                }
                let bytes = (try? FileManager.default.attributesOfItem(atPath: file)[.size] as? Int) ?? 0
                if admin.json { return try Output.json(Made(file: file, bytes: bytes, inspection: inspection)) }
                Output.line("backed up into \(file), \(bytes / 1024) KiB")
                Output.fields(inspection.fields)
                Output.line("Keep the node's key file (--identity) too, in another place: without it the backup can't be read, and with it")
                Output.line("everything can. Restore with waku-push admin restore.")
            }
        }

        private struct Made: Encodable {
            let file: String
            let bytes: Int
            let inspection: StoreInspection
        }
    }

    struct Restore: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Puts a backup in the place of the database, while no daemon runs.",
            discussion: """
                The backup is read whole, and every sealed row opened, before anything is replaced. What was there stays as \
                waku-push.sqlite.replaced in the data folder; delete it when all is well.

                What happened since the backup is asked of the relay's store when the daemon starts: registrations that it still has come \
                back. Notifications delivered since then may be delivered again.

                EXAMPLE
                  waku-push admin restore /backup/waku-push-2027-01-15 --data data \\
                    --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "The file that admin backup made.") var file: String

        func run() async throws {
            try await reportingFailures {
                let identity = try admin.requiredIdentity("that every row can be opened is checked first")
                guard FileManager.default.isReadableFile(atPath: file) else {
                    throw CommandFailure(.data, "backup \(file) can't be read: is it there, and may this user read it?")
                }
                let folder = try DataFolder(locking: admin.folder(of: command))
                defer { folder.unlock() }
                let inspection = try StoreBackup.restore(
                    file, into: folder, storageKey: Sealer.storageKey(of: identity), parts: NodeAssembly.parts)
                if admin.json { return try Output.json(inspection) }
                Output.line("restored from \(file)")
                Output.fields(inspection.fields)
            }
        }
    }

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Reads the whole database, beside a running node or without one: is it sound, and does each sealed row open?",
            discussion: """
                EXAMPLES
                  waku-push admin check --data data --identity id.key
                  waku-push admin check --file /backup/waku-push-2027-01-15 \\
                    --identity id.key

                EXIT CODES
                  0   all is sound
                  65  something is damaged, or the key is another's
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "A backup, instead of the data folder's database.") var file: String?

        func run() async throws {
            try await reportingFailures {
                let key = try admin.identityFile.map { Sealer.storageKey(of: try IdentityFile.read($0)) }
                let path = file ?? DataFolder.databasePath(in: admin.folder(of: command))
                guard FileManager.default.fileExists(atPath: path) else {
                    throw CommandFailure(.data, "there is no database at \(path): has the daemon run with this data folder?")
                }
                let inspection = try StoreInspection(of: path, storageKey: key, parts: NodeAssembly.parts)
                if admin.json { try Output.json(inspection) } else { Output.fields(inspection.fields) }
                guard inspection.isWhole else {
                    throw CommandFailure(.data, "the database at \(path) is damaged: restore a backup (waku-push admin restore)")
                }
            }
        }
    }

    struct RotateStorageKey: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Seals all rows anew under another key, and rewrites the file, while no daemon runs.",
            discussion: """
                The key of the rows comes from the node's key and a random salt, which is what changes: the node's key stays, and so does \
                what clients know. It protects what is stored from then on against whoever got hold of the rows' key before; it does not \
                protect against whoever has the node's key, nor change backups made before. Needs free disk of twice the database's size.

                EXAMPLE
                  waku-push admin rotate-storage-key --data data --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        func run() async throws {
            try await reportingFailures {
                let identity = try admin.requiredIdentity("what is registered is sealed with a key that comes from the node's")
                let path = admin.folder(of: command)
                guard FileManager.default.fileExists(atPath: DataFolder.databasePath(in: path)) else {
                    throw CommandFailure(.data, "there is no database in \(path): has the daemon run with this data folder?")
                }
                let folder = try DataFolder(locking: path)
                defer { folder.unlock() }
                let count = try StorageKeyRotation.run(Sealer.storageKey(of: identity), in: folder, parts: NodeAssembly.parts)
                if admin.json { return try Output.json(["rows": count]) }
                Output.line("\(count) rows are sealed under a new key. Backups made before need no other key file than this one.")
            }
        }
    }
}

extension StoreInspection {
    fileprivate var fields: [(String, String)] {
        var fields = [("integrity", problems.isEmpty ? "sound" : "damaged: " + problems.map(Output.printable).joined(separator: "; "))]
        for (name, rows) in (rows ?? [:]).sorted(by: { $0.key > $1.key }) {
            fields.append((name, rows.unreadable == 0 ? "\(rows.count), all open" : "\(rows.unreadable) of \(rows.count) can't be opened"))
        }
        if rows == nil { fields.append(("sealed rows", "not opened: --identity is missing")) }
        if isRotationUnfinished {
            fields.append(("storage key", "its rotation was interrupted: run waku-push admin rotate-storage-key again"))
        }
        return fields
    }
}
