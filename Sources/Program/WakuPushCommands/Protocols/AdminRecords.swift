import PushNode
import ArgumentParser
import Foundation
import Core
import StatusProtocol
import StatusV01Server
import Storage
import WakuCrypto

extension Admin {
    /// Separate from ``Registrations``, because version 0.1 registers a whole account at once.
    struct Records: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Accounts that are registered by version 0.1 (serve --status-v0.1).",
            subcommands: [List.self, Show.self, Remove.self])
    }
}

extension Admin.Records {
    struct List: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists records, oldest first, tombstones too.",
            discussion: "EXAMPLE\n  waku-push admin records list --data data --limit 50 --offset 100")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @OptionGroup var page: PageOptions

        func execute() async throws {
            let store = try await openStore()
            let rows = try store.read(StatusV01Server.Records.summaries(limit: page.limit.oneMore, offset: page.offset))
                .map(RecordRow.init).limited(to: page.limit, offset: page.offset)
            if admin.json { return try Output.json(rows) }
            let hasIdentities = rows.contains { $0.identity != nil }
            Output.table(
                ["KEY HASH", "STATE", "VERSION", "CHANGED"] + (hasIdentities ? ["IDENTITY"] : []),
                rows.map {
                    [String($0.keyHash.prefix(16)) + "…", $0.state, String($0.version), $0.changed]
                        + (hasIdentities ? [$0.identity ?? "first"] : [])
                })
        }
    }

    struct Show: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows one account's record.",
            discussion: """
                With the node's key (--identity) the record is opened. Tokens stay hidden without --reveal.

                EXAMPLE
                  waku-push admin records show 0eb7c16f --data data --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "A key hash (SHA3-256), a public key, or the beginning of a hash.") var account: AccountArgument
        @Flag(help: "Show tokens. Needs --identity.") var reveal = false

        func execute() async throws {
            let isOpened = reveal || admin.identityFile != nil
            let store = try await openStore(unsealing: isOpened)
            let summaries = try account.resolve(in: store)
            let records = StatusV01Server.Records(store.sealer)
            if reveal { try await audited(.recordsReveal) {} }
            let details = try summaries.map { summary in
                let opened = isOpened ? try store.read(records.preferences(of: summary.keyHash)) : nil
                return RecordDetail(row: RecordRow(summary), opened: opened.map { .init($0, reveal: reveal) })
            }
            try Output.fields(details, asJSON: admin.json, isArray: details.count != 1)
        }
    }

    struct Remove: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends a record, as if its owner had unregistered: only key hash and version stay.",
            discussion: "EXAMPLE\n  waku-push admin records remove 0eb7c16f --data data --yes")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "A key hash (SHA3-256), a public key, or the beginning of a hash.") var account: AccountArgument
        @Flag(help: "Remove it. Without it the command only prints what would be removed.") var yes = false

        func execute() async throws {
            let hold = yes ? try await holdStore() : nil
            defer { hold?.release() }
            let store = try await openStore(isChanging: yes)
            let summaries = try account.resolve(in: store).filter(\.isRegistered)
            guard !summaries.isEmpty else { throw CommandFailure(.data, "nothing is registered there that could be removed") }
            if yes {
                try await audited(.recordsRemove) {
                    for summary in summaries {
                        guard try await store.commit(StatusV01Server.Records.remove(summary.keyHash, at: .now())) else {
                            throw CommandFailure(.data, "it was unregistered meanwhile")
                        }
                    }
                }
            }
            let rows = summaries.map(RecordRow.init)
            if admin.json { return rows.count == 1 ? try Output.json(rows[0]) : try Output.json(rows) }
            for summary in summaries { Output.line("\(yes ? "removed" : "would remove") \(summary.keyHash.hex.prefix(16))…") }
            if !yes { Output.line("Nothing was removed: repeat with --yes.") }
        }
    }
}

/// Selects the account of a record.
struct AccountArgument: ExpressibleByArgument {
    /// The first hexadecimal digits of the key hash.
    let prefix: String

    init?(argument: String) {
        let digits = argument.hasPrefix("0x") ? String(argument.dropFirst(2)) : argument
        guard !digits.isEmpty, digits.allSatisfy(\.isHexDigit) else { return nil }
        if let bytes = WakuCrypto.bytes(hex: digits), bytes.count > V01.KeyHash.byteCount {
            guard let key = try? PublicKey(parsing: bytes) else { return nil }
            prefix = V01.KeyHash(of: key).hex
        } else {
            prefix = digits.lowercased()
        }
    }

    /// The records of an account, one for each identity of the node with which it is registered.
    ///
    /// - Throws: ``CommandFailure`` unless exactly one account matches.
    func resolve(in store: any Store) throws -> [RecordSummary] {
        let found = try store.read(StatusV01Server.Records.summaries(keyHashPrefix: prefix, limit: 100))
        guard !found.isEmpty else { throw CommandFailure(.data, "no account's key hash begins with \(prefix)") }
        guard Set(found.map(\.keyHash.bytes)).count == 1 else {
            throw CommandFailure(.data, "several accounts' key hashes begin with \(prefix): give more digits")
        }
        return found
    }
}

struct RecordRow: Encodable {
    let keyHash: String
    let state: String
    let version: UInt64
    let changed: String
    /// As in ``RegistrationRow``.
    let identity: String?
}

extension RecordRow {
    init(_ summary: RecordSummary) {
        self.init(
            keyHash: summary.keyHash.hex, state: summary.isRegistered ? "registered" : "unregistered", version: summary.version,
            changed: summary.changedAt.formatted, identity: summary.keyHash.server?.hex)
    }
}

private struct RecordDetail: FieldsReport {
    let row: RecordRow
    let opened: Opened?

    struct Opened: Encodable {
        struct Device: Encodable {
            let installation: String
            let platform: String
            let enabled: Bool
            let allowedKeys, blockedChats: Int
            let deviceToken: String?
        }

        let accessToken: String?
        let devices: [Device]

        init(_ preferences: V01.Preferences, reveal: Bool) {
            accessToken = reveal ? preferences.accessToken.revealed : nil
            devices = preferences.devices.map { device in
                Device(
                    installation: device.installationID.string, platform: device.platform?.name ?? "unknown", enabled: device.isEnabled,
                    allowedKeys: device.filters?.allowedKeyList.count ?? 0, blockedChats: device.filters?.blockedChatList.count ?? 0,
                    deviceToken: reveal ? device.token.revealed : nil)
            }
        }
    }

    var fields: [(String, String)] {
        var fields = [
            ("key hash", row.keyHash), ("state", row.state), ("version", String(row.version)), ("changed", row.changed),
        ]
        if let identity = row.identity { fields.append(("identity", identity)) }
        guard let opened else { return fields }
        fields.append(("access token", opened.accessToken ?? Output.hidden))
        for device in opened.devices {
            fields += [
                ("installation", device.installation), ("  platform", device.platform),
                ("  enabled", device.enabled ? "yes" : "no"),
                ("  allowed keys", String(device.allowedKeys)), ("  blocked chats", String(device.blockedChats)),
                ("  device token", device.deviceToken ?? Output.hidden),
            ]
        }
        return fields
    }
}
