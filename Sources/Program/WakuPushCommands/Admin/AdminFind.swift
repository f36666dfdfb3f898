import ArgumentParser
import Delivery
import NodeAPI
import PushNode
import StatusProtocol
import StatusServer
import Storage

extension Admin.Registrations {
    struct Find: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Finds installations by id, registrant or device token.",
            discussion: """
                A device token is read from a file or from standard input, and compared with every registration. This needs the node's key.

                EXAMPLES
                  waku-push admin registrations find 7c33e66c --data data
                  waku-push admin registrations find --token-file - --data data \\
                    --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @OptionGroup var filter: FilterOptions
        @Argument(help: "The beginning of an installation id or of a key hash, or a public key.") var text: String?
        @Option(help: "A file with a device token, or - for standard input. Needs --identity.") var tokenFile: String?
        @Option(help: "Maximum number of results.") var limit = ResultLimit()

        func execute() async throws {
            guard (text == nil) != (tokenFile == nil) else {
                throw CommandFailure(.usage, "give the beginning of an installation id or a key hash, or --token-file")
            }
            let rows =
                if let tokenFile {
                    try await audited(.registrationsFind) { try await find(byTokenIn: tokenFile) }
                } else {
                    try await find(text ?? "")
                }
            guard !rows.isEmpty else { throw CommandFailure(.data, "no matching registration") }
            try rows.print(asJSON: admin.json)
        }

        private func find(_ text: String) async throws -> [RegistrationRow] {
            let store = try await openStore()
            // Installation ids of identities other than the first are stored with a mark before them.
            let marks = text.isEmpty ? [] : try store.read(StoreIdentities.all()).dropFirst().map { ServerMark(of: $0).storedPrefix }
            var filters = ([[]] + marks).map { mark in
                var filter = filter.filter
                filter.installationPrefix = mark + Array(text.utf8)
                return filter
            }
            let registrant = RegistrantArgument(argument: text)
            if let registrant {
                var byOwner = filter.filter
                byOwner.keyHashPrefix = registrant.prefix
                filters.append(byOwner)
            }
            let found = try filters.reduce(into: []) { found, filter in
                found += try store.read(StatusServer.Registrations.summaries(filter, limit: limit.count - found.count))
            }.map { RegistrationRow($0) }
            guard let registrant, found.count < limit.count else { return found }
            let owners = OwnerFilter(filter.filter, prefix: registrant.keyPrefix)
            return found + (try AddedRegistration.find(owners, limit: limit.count - found.count, in: store).map { RegistrationRow($0) })
        }

        private func find(byTokenIn path: String) async throws -> [RegistrationRow] {
            let store = try await openStore(unsealing: true)
            let token = try SecretInput.token(path)
            var found: [RegistrationRow] = []
            try StatusServer.Registrations(store.sealer).forEachRecord(filter.filter, in: store) { record in
                guard let bytes = record.registration, let registration = try? PushNotificationRegistration(parsing: bytes) else {
                    return true
                }
                if registration.deviceToken == token {
                    let summary = RegistrationSummary(
                        key: record.key, version: record.version, changedAt: record.changedAt, platform: registration.platform)
                    found.append(RegistrationRow(summary))
                }
                return found.count < limit.count
            }
            guard found.count < limit.count else { return found }
            try AddedRegistration.forEach(OwnerFilter(filter.filter), in: store) { added, opened in
                if opened.address?.gorushDevice?.token == token { found.append(RegistrationRow(added)) }
                return found.count < limit.count
            }
            return found
        }
    }
}
