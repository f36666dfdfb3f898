import PushNode
import ArgumentParser
import Storage

extension Admin.Registrations {
    struct Export: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Exports registrations to a file that only the same node's key can decrypt.",
            discussion: """
                Tombstones are exported too: without them a removed registration could come back. Use --state to select. The rows of \
                all protocols are exported; with --platform only those of Status, whose registrations have one platform each.

                EXAMPLES
                  waku-push admin registrations export /backup/registrations \\
                    --data data --identity id.key
                  waku-push admin registrations export - | ssh backup 'cat > registrations'
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @OptionGroup var filter: FilterOptions
        @Argument(help: "The file to create, with mode 0600. It must not exist. - for standard output.") var file: String

        func validate() throws {
            if file == "-", admin.json { throw ValidationError("--json is for exports to a file: the export is on standard output") }
        }

        func execute() async throws {
            let identity = try admin.requiredIdentity("registrations are encrypted with a key derived from the node's")
            let store = try await openStore(unsealing: true)
            // On a read-only file system there can be no record, and the data is to be saved.
            let count = try await audited(.registrationsExport, isRecordRequired: !DataFolder.isReadOnly(folder)) {
                let progress = ProgressBar()
                defer { progress.clear() }
                var writer = try RegistrationsFileWriter(file, identity: identity) { progress.show(rows: $0) }
                for lines in ProtocolLines.all where filter.platform == nil || !lines.hasSeveralPlatforms {
                    try lines.export(store, filter.filter, &writer)
                }
                try writer.finish()
                return writer.count
            }
            if admin.json { return try Output.json(["count": count]) }
            let place = file == "-" ? "standard output" : file
            let result = "\(count) registrations exported to \(place), which can be read only with this node's key file."
            if file == "-" { CommandFailure.report(result) } else { Output.line(result) }
        }
    }

    struct Import: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Imports registrations from a file that was exported with the same node's key.",
            discussion: """
                Stored registrations with the same or a higher version are kept. A running daemon uses imported registrations at once. The \
                database is created if there is none. A new database does not know which notifications were posted: when its daemon starts, it \
                catches up on the last ten minutes, and may post their notifications again, with the same ids.

                EXAMPLE
                  waku-push admin registrations import /backup/registrations \\
                    --data data --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "A file written by registrations export; - for standard input.") var file: String

        func execute() async throws {
            let identity = try admin.requiredIdentity("the file is encrypted with a key derived from the node's")
            let target = try await ImportTarget(folder: folder, at: await location(), identity)
            defer { target.hold.release() }
            try await audited(.registrationsImport) {
                let progress = ProgressBar()
                defer { progress.clear() }
                do {
                    var reader = try RegistrationsFileReader(file, identity: identity)
                    while let entry = try reader.next() {
                        try await target.merge(entry)
                        progress.show(rows: reader.count, reader.share)
                    }
                } catch {
                    // The part of the file before the damage is kept. Its cause says more than a failure of this.
                    try? await target.finish()
                    throw error
                }
                try await target.finish()
            }
            let counts = target.counts
            if admin.json { return try Output.json(counts) }
            Output.line("\(counts.imported) imported, \(counts.kept) kept: stored with the same or a higher version.")
            if counts.leftOut > 0 {
                Output.line(
                    "\(counts.leftOut) left out: names of Session subscriptions that ended or came from a clock ahead, and access tokens that "
                        + "version 0.1's records had. One of the two databases was moved to this identity, so its hashes differ.")
            }
            if counts.unparsable > 0 {
                Output.line("\(counts.unparsable) left out: registrations of an earlier release that this one refuses as malformed.")
            }
        }
    }
}
