import PushNode
import ArgumentParser
import Delivery
import Core
import NodeAPI
import NodeAssembly
import StatusRules
import StatusServer
import StatusV01Server
import Storage
import StatusProtocol
import WakuCrypto

extension Admin.Registrations {
    struct List: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists installations including tombstones, oldest first.",
            discussion: """
                EXAMPLES
                  waku-push admin registrations list --data data --limit 50 --offset 100
                  waku-push admin registrations list --data data --platform apn \\
                    --older-than 90d
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @OptionGroup var filter: FilterOptions
        @OptionGroup var page: PageOptions

        func execute() async throws {
            let store = try await openStore()
            let limit = page.limit.oneMore
            var rows = try store.read(StatusServer.Registrations.summaries(filter.filter, limit: limit, offset: page.offset))
                .map { RegistrationRow($0) }
            if rows.count < limit, !NodeAssembly.added.isEmpty {
                let before = try store.read(StatusServer.Registrations.summaries(filter.filter, limit: page.offset)).count
                rows += try AddedRegistration.find(
                    OwnerFilter(filter.filter), limit: limit - rows.count, offset: rows.isEmpty ? page.offset - before : 0,
                    in: store
                ).map { RegistrationRow($0) }
            }
            try rows.limited(to: page.limit, offset: page.offset).print(asJSON: admin.json)
        }
    }

    struct Show: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows one registrant's installations.",
            discussion: """
                With the node's key (--identity) the registrations are decrypted. Tokens are hidden unless --reveal is given.

                EXAMPLE
                  waku-push admin registrations show 0eb7c16f --data data \\
                    --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "A key hash, a public key, or a prefix of a key hash.", transform: RegistrantArgument.parse) var registrant:
            RegistrantArgument
        @Flag(help: "Show tokens. Needs --identity.") var reveal = false

        func execute() async throws {
            let isOpened = reveal || admin.identityFile != nil
            let store = try await openStore(unsealing: isOpened)
            let (keyHash, added) = try registrant.resolveAll(in: store)
            let registrations = StatusServer.Registrations(store.sealer)
            if reveal { try await audited(.registrationsReveal) {} }
            var details: [RegistrationDetail] = []
            if let keyHash {
                details = try store.read(StatusServer.Registrations.summaries(keyHashPrefix: keyHash.hex, limit: .max)).map { summary in
                    let opened = isOpened ? try store.read(registrations.state(of: summary.key))?.registration : nil
                    return RegistrationDetail(summary, opened: opened, reveal: reveal)
                }
            }
            details += try added.map { found in
                RegistrationDetail(found, opened: isOpened ? try found.opened(in: store) : nil, reveal: reveal)
            }
            try Output.fields(details, asJSON: admin.json)
        }
    }

    struct Stats: AdminCommand {
        static let configuration = CommandConfiguration(abstract: "Prints numbers of registrants, installations and waiting notifications.")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        func execute() async throws {
            try StoredNumbers(of: await openStore()).print(asJSON: admin.json)
        }
    }

    struct Remove: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes registrations, as if the registrant had unregistered: only key hash, installation id and version are kept.",
            discussion: """
                With --registered-with all registrations with one of several identities of the node are removed, once it is not served any more.

                EXAMPLES
                  waku-push admin registrations remove 0eb7c16f --data data --yes
                  waku-push admin registrations remove --registered-with 0x04… \\
                    --data data --yes
                """)

        private static let chunk = 500

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "A key hash, a public key, or a prefix of a key hash.", transform: RegistrantArgument.parse) var registrant:
            RegistrantArgument?
        @Option(help: "Only this installation. Version 0.1 has none: its records are left.") var installation: String?
        @Option(help: "All registrations with this identity of the node: its public key.", transform: PublicKeyArgument.parse)
        var registeredWith: PublicKeyArgument?
        @Flag(help: "Remove them. Without it the command only prints what would be removed.") var yes = false

        func validate() throws {
            guard (registrant == nil) != (registeredWith == nil) else {
                throw ValidationError("give a registrant, or --registered-with")
            }
        }

        func execute() async throws {
            let hold = yes ? try await holdStore() : nil
            defer { hold?.release() }
            let store = try await openStore(isChanging: yes)
            let (keyHash, owned) = try registrant?.resolveAll(in: store) ?? (nil, [])
            let mark = try registeredWith.map { try self.mark(of: $0.key, in: store) }
            let wanted = installation.map(InstallationID.init)
            // Removing needs no decryption, and therefore not the node's key.
            let found = StatusServer.Registrations.summaries(keyHashPrefix: keyHash?.hex ?? "", limit: .max).map { rows in
                rows.filter {
                    $0.platform != nil && (wanted == nil || $0.key.installationID == wanted)
                        && (registeredWith == nil || $0.key.server == mark)
                }
            }
            let rows = registrant != nil && keyHash == nil ? [] : try store.read(found)
            var added = owned.filter { $0.row.platform != nil && wanted == nil }
            var records =
                registeredWith == nil || wanted != nil
                ? []
                : try store.read(StatusV01Server.Records.summaries(limit: .max)).filter { $0.isRegistered && $0.keyHash.server == mark }
            if yes {
                // In sequence: the registrant's topic keys are deleted with the last registration.
                let ends = rows.map { StatusServer.Registrations.unregister($0.key, version: $0.version, at: .now()) }
                let found = added.count
                (records, added) = try await audited(.registrationsRemove) {
                    let removed = (
                        try await records.removed { try await store.commit(StatusV01Server.Records.remove($0.keyHash, at: .now())) },
                        try await added.removed { try await store.commit($0.registrations.end($0.row)) }
                    )
                    for chunk in ends.chunks(of: Self.chunk) {
                        for result in await store.commitEach(Array(chunk)) { try result.get() }
                    }
                    return removed
                }
                if added.count < found {
                    CommandFailure.report("warning: \(found - added.count) registrations changed meanwhile, and stay: repeat the command")
                }
            }
            guard !rows.isEmpty || !records.isEmpty || !added.isEmpty else { throw CommandFailure(.data, "no registration to remove") }
            if admin.json {
                var registrations = rows.map { RegistrationRow($0) } + added.map { RegistrationRow($0) }
                guard registeredWith != nil else {
                    for index in registrations.indices where !yes { registrations[index].trial = true }
                    return try Output.json(registrations)
                }
                return try Output.json(
                    Removed(registrations: registrations, records: records.map(RecordRow.init), trial: yes ? nil : true))
            }
            let verb = yes ? "removed" : "would remove"
            for record in records { Output.line("\(verb) \(record.keyHash.hex.prefix(16))… (version 0.1)") }
            for row in rows { Output.line("\(verb) \(row.key.keyHash.hex.prefix(16))… \(row.key.installationID.string)") }
            for device in added { Output.line("\(verb) \(hexString(device.row.owner).prefix(16))… (\(device.protocolName))") }
            if !yes { Output.line("Nothing was removed: repeat with --yes.") }
        }

        /// The rows of one identity.
        private struct Removed: Encodable {
            let registrations: [RegistrationRow]
            /// Of version 0.1.
            let records: [RecordRow]
            /// Nothing was removed; nil otherwise.
            let trial: Bool?
        }

        /// - Throws: ``CommandFailure`` unless the database has served this identity beside others.
        private func mark(of identity: PublicKey, in store: any Store) throws -> ServerMark? {
            let known = try store.read(StoreIdentities.all())
            guard known.contains(identity) else {
                throw CommandFailure(.data, "this is not one of several identities that the database has served: nothing was removed")
            }
            return ServerMarks(known: known, identity: identity).mark(of: identity)
        }
    }
}

extension Array {
    /// The elements that `remove` found, one after the other: a running daemon may have changed the others.
    fileprivate func removed(by remove: (Element) async throws -> Bool) async rethrows -> [Element] {
        var removed: [Element] = []
        for element in self {
            if try await remove(element) { removed.append(element) }
        }
        return removed
    }
}

/// A row of a list of installations.
struct RegistrationRow: Encodable {
    /// The owner's compressed public key in rows of protocols of other packages.
    let keyHash: String
    let installation: String
    let state: String
    let version: UInt64
    let changed: String
    /// The mark of the identity with which it is registered; nil: the first that the database served.
    var identity: String?
    /// nil for Status.
    var `protocol`: String?
    /// The time until which the row stays; nil for Status, whose rows have no end.
    var ends: String?
    /// Of a removal: the row was not removed. nil otherwise.
    var trial: Bool?
}

extension RegistrationRow {
    init(_ added: AddedRegistration) {
        let row = added.row
        self.init(
            keyHash: hexString(row.owner), installation: "", state: row.platform?.name ?? "unregistered", version: row.version,
            changed: row.changedAt.formatted, protocol: added.protocolName, ends: row.end.formatted)
    }

    init(_ summary: RegistrationSummary) {
        self.init(
            keyHash: summary.key.keyHash.hex, installation: summary.key.installationID.string,
            state: summary.platform?.name ?? "unregistered", version: summary.version, changed: summary.changedAt.formatted,
            identity: summary.key.server?.hex)
    }
}

extension [RegistrationRow] {
    func print(asJSON: Bool) throws {
        if asJSON { return try Output.json(self) }
        let hasIdentities = contains { $0.identity != nil }
        let hasProtocols = contains { $0.protocol != nil }
        Output.table(
            [hasProtocols ? "KEY HASH OR KEY" : "KEY HASH", "INSTALLATION", "STATE", "VERSION", "CHANGED"]
                + (hasIdentities ? ["IDENTITY"] : []) + (hasProtocols ? ["PROTOCOL"] : []),
            map {
                [String($0.keyHash.prefix(16)) + "…", $0.installation, $0.state, String($0.version), $0.changed]
                    + (hasIdentities ? [$0.identity ?? "first"] : []) + (hasProtocols ? [$0.protocol ?? "status"] : [])
            })
    }
}

/// An installation with its registration, if that was decrypted.
private struct RegistrationDetail: FieldsReport {
    let row: RegistrationRow
    var opened: Opened?
    /// Of a protocol of another package.
    var device: Device?

    struct Device: Encodable {
        let apnTopic: String?
        let deviceToken: String?
        /// The device as JSON, which the protocol defines.
        let content: String?
    }

    struct Opened: Encodable {
        let enabled: Bool
        let apnTopic: String
        let deviceToken: String?
        let accessToken: String?
        let contactsOnly: Bool
        let allowedKeys, blockedChats, mutedChats, allowedMentionChats: Int
        let blockMentions: Bool
    }

    init(_ summary: RegistrationSummary, opened: PushNotificationRegistration?, reveal: Bool) {
        row = RegistrationRow(summary)
        self.opened = opened.map { registration in
            Opened(
                enabled: registration.enabled, apnTopic: registration.apnTopic,
                deviceToken: reveal ? registration.deviceToken.revealed : nil,
                accessToken: reveal ? registration.accessToken.revealed : nil,
                contactsOnly: registration.allowFromContactsOnly, allowedKeys: registration.allowedKeyList.count,
                blockedChats: registration.blockedChatList.count, mutedChats: registration.mutedChatList.count,
                allowedMentionChats: registration.allowedMentionsChatList.count, blockMentions: registration.blockMentions)
        }
    }

    init(_ added: AddedRegistration, opened: OpenedRegistration?, reveal: Bool) {
        row = RegistrationRow(added)
        device = opened.map { opened in
            Device(
                apnTopic: opened.address?.gorushDevice?.apnTopic, deviceToken: reveal ? opened.address?.gorushDevice?.token.revealed : nil,
                content: reveal ? opened.content.map { String(decoding: $0, as: UTF8.self) } : nil)
        }
    }

    var fields: [(String, String)] {
        if let name = row.protocol { return fields(ofProtocol: name) }
        var fields = [
            ("key hash", row.keyHash), ("installation", row.installation), ("state", row.state),
            ("version", String(row.version)), ("changed", row.changed),
        ]
        if let identity = row.identity { fields.append(("identity", identity)) }
        guard let opened else { return fields }
        fields += [
            ("enabled", opened.enabled ? "yes" : "no"), ("APN topic", opened.apnTopic),
            ("device token", opened.deviceToken ?? Output.hidden), ("access token", opened.accessToken ?? Output.hidden),
            ("contacts only", opened.contactsOnly ? "yes" : "no"), ("allowed keys", String(opened.allowedKeys)),
            ("blocked", String(opened.blockedChats)), ("muted chats", String(opened.mutedChats)),
            ("mentions", opened.blockMentions ? "blocked" : "from \(opened.allowedMentionChats) chats"),
        ]
        return fields
    }
}

extension RegistrationDetail {
    private func fields(ofProtocol name: String) -> [(String, String)] {
        var fields = [
            ("protocol", name), ("key", row.keyHash), ("state", row.state), ("version", String(row.version)), ("changed", row.changed),
            ("ends", row.ends ?? "–"),
        ]
        guard let device else { return fields }
        if let topic = device.apnTopic, !topic.isEmpty { fields.append(("APN topic", topic)) }
        fields.append(("device token", device.deviceToken ?? Output.hidden))
        if let content = device.content { fields.append(("content", content)) }
        return fields
    }
}
